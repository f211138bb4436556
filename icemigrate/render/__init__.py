"""Values in, strings out: every output format is one file here and one line in :mod:`icemigrate.render.formats`."""
