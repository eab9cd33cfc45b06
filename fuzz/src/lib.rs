//! The properties that the fuzz targets check; `make test` checks the same ones on stable.

pub mod properties;
