"""Values in, strings out; :data:`icemigrate.render.formats.FORMATS` is the one list of output formats."""
