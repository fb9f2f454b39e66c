"""A file made of another one, some of its tensors in other formats.

SPDX-License-Identifier: MIT
"""
