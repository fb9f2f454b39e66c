"""The command h5fpconv: float datasets of HDF5 files in fewer bits.

SPDX-License-Identifier: MIT

A package uses those below it and none above:

    cli          the command line, with all commands
    commands     one module a command
    report       an inspection shown: in a terminal, as a page
    analysis     what values are like, and what a conversion would do to them
    rewriting    a file made of another one, some of its tensors in other formats
    safetensors  safetensors files, and their tensors as datasets
    hdf5         what a file holds, read and written
    user         what the user asks for, and sees
"""
