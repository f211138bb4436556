"""Git and the code hosts."""
