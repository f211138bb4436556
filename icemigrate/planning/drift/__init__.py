"""Changes of tables by other clients since the history recorded them: reported,
declared, or reverted; pure.
"""
