"""What others did to tables since the history recorded them: told, declared, or led back; pure."""
