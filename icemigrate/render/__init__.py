"""Values in, strings out; :data:`icemigrate.render.formats.OUTPUT_FORMATS` is the one list of output
formats."""
