"""An inspection shown: in a terminal, as a page.

SPDX-License-Identifier: MIT
"""
