"""The command h5fpconv: float datasets of HDF5 files in fewer bits.

SPDX-License-Identifier: MIT

Each command is a module with `add_parser(subparsers)` and `run(arguments)`.
"""
