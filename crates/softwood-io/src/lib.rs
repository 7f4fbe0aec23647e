//! Tables in and out.
