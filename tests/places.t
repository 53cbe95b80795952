#!/bin/sh
exec "${BUILD:-build}/tests/test_places"
