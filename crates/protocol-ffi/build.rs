//! Gives the shared library its name. Owns nothing else; the exported symbols are those that are `no_mangle`.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // The number is RESPB_ABI_VERSION.
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librespb.so.0");
    }
}
