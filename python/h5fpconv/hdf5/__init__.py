"""What an HDF5 file holds, read and written: objects, tensors, references, attributes.

SPDX-License-Identifier: MIT
"""
