"""What every part of the library may use: messages, checks, files, threads, compiling."""
