// test_header.cpp - the same source as C++
//
// SPDX-License-Identifier: MIT
#include "test_header.c"
