"""What values are like, what a conversion would do to them, and how far tensors are apart.

SPDX-License-Identifier: MIT
"""
