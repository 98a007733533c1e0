//! Everything that touches this machine, and the only `unsafe`.
