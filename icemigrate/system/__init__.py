"""The files of a checked-out repository, which anyone who can send a change may have written.

Every file that a repository names is read by :mod:`icemigrate.system.file_reads` and written by
:mod:`icemigrate.system.file_writes`, and nothing else in the package opens one.  Both keep to the repository
(:mod:`icemigrate.system.repository_boundary`): a path may not lead out of it, neither as it is written nor by
a link.
"""
