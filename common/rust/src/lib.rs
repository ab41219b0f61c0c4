//! What tutti takes from Rust libraries, behind one C ABI (abi.h says what each function promises).
//! Nothing unwinds across it, and every allocation that leaves has a function here that frees it.

mod border;
mod rows;
mod table;
mod template;
mod tokenizer;
