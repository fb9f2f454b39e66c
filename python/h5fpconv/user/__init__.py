"""What the user asks for, and sees: targets, a selection, messages, exit statuses, output files.

SPDX-License-Identifier: MIT
"""
