//! The properties that the fuzz targets check; `make test` checks the same ones with a stable compiler.

pub mod properties;
