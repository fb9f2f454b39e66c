"""Safetensors files, and their tensors as datasets of HDF5.

SPDX-License-Identifier: MIT
"""
