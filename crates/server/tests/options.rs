//! Where options come from: environment, file, flags, and what is said when one is wrong.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use weft_server::Options;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weft-options-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a folder for files");
        Self(path)
    }
    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn read(arguments: &[&str], environment: &[(&str, &str)]) -> Result<Options, String> {
    let environment = environment.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    Options::read(arguments.iter().map(OsString::from), environment).map_err(|error| error.to_string())
}

#[test]
fn flags_win_over_the_file_and_the_file_over_the_environment() {
    let folder = Folder::new("precedence");
    let file = folder.file("weft.conf", "# ours\n\nPORT 7001\nmaxclients 11\n  bind 127.0.0.1  -::1\n");
    let environment =
        [("WEFT_PORT", "7000"), ("WEFT_TIMEOUT", "3"), ("HOME", "/"), ("WEFT_MAXCLIENTS", "12")];
    let options = read(&[&file, "--port", "7002", "--loglevel=debug"], &environment).unwrap();
    assert_eq!(options.port, 7002);
    assert_eq!(options.values.get("maxclients").number, 11);
    assert_eq!(options.values.get("timeout").number, 3);
    assert_eq!(options.bind, ["127.0.0.1", "-::1"]);
    assert_eq!(options.log.level, weft_server::log::Level::Debug);
    assert_eq!(options.config_file.unwrap().display().to_string(), file);
    assert!(options.warnings.is_empty());
    let plain = read(&[], &[]).unwrap();
    assert_eq!((plain.port, plain.threads, plain.databases), (6379, 0, 16));
    assert_eq!(plain.bind, ["*", "-::*"]);
    assert_eq!((plain.unixsocket, plain.dir, plain.config_file), (None, None, None));
}

#[test]
fn quotes_includes_and_users() {
    let folder = Folder::new("include");
    folder.file("a.part", "timeout 5\n");
    folder.file("b.part", "timeout 6\nuser ann on >secret ~* +@all\n");
    let pattern = folder.0.join("*.part").display().to_string();
    let file = folder.file(
        "weft.conf",
        &format!(
            "include {pattern}\ninclude {}/none*.conf\nrequirepass \"a b\\x41\"\nsave \"\"\n",
            folder.0.display()
        ),
    );
    let options = read(&[&file], &[]).unwrap();
    assert_eq!(options.values.get("timeout").number, 6);
    assert_eq!(&*options.values.get("requirepass").text, b"a bA");
    let (place, words) = &options.users[0];
    assert!(place.ends_with("b.part:2"), "{place}");
    assert_eq!(words.concat(), b"annon>secret~*+@all");
    let own = folder.file("self.conf", &format!("include {}/self.conf\n", folder.0.display()));
    assert!(read(&[&own], &[]).unwrap_err().contains("include each other"));
}

#[test]
fn what_is_wrong_names_its_place_and_a_way_out() {
    let folder = Folder::new("wrong");
    let file = |text: &str| folder.file("weft.conf", text);
    for (text, expected) in [
        ("port 1\nmaxmemroy 1gb\n", "weft.conf:2: there is no directive 'maxmemroy'; is 'maxmemory' meant?"),
        (
            "colour red\n",
            "weft.conf:1: there is no directive 'colour'; docs/configuration.md lists those there are",
        ),
        ("port 99999\n", "weft.conf:1: port 99999: argument must be between 0 and 65535 inclusive"),
        ("port\n", "weft.conf:1: port : wrong number of arguments"),
        ("port \"1\n", "weft.conf:1: a quote is not closed, or something follows it at once"),
        ("appendonly maybe\n", "weft.conf:1: appendonly maybe: argument must be 'yes' or 'no'"),
        ("loadmodule x.so\n", "weft.conf:1: Weft has no modules; take the line out"),
        (
            "rename-command GET \"\"\n",
            "weft.conf:1: commands keep their names; forbid them by ACL rules instead",
        ),
        (
            "include nowhere.conf\n",
            "weft.conf:1: nowhere.conf: cannot be read: No such file or directory (os error 2)",
        ),
    ] {
        let error = read(&[&file(text)], &[]).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
    assert_eq!(read(&["--port"], &[]).unwrap_err(), "--port: needs a value behind it");
    assert_eq!(
        read(&["--prot", "1"], &[]).unwrap_err(),
        "--prot: there is no directive 'prot'; is 'port' meant?"
    );
    assert!(
        read(&["--port", "1", "2"], &[]).unwrap_err().starts_with("command line: '2' is not expected here")
    );
    assert!(read(&[], &[("WEFT_PORT", "x")]).unwrap_err().starts_with("WEFT_PORT: "));
    let options = read(&[], &[("WEFT_MAXMEMROY", "1")]).unwrap();
    assert_eq!(
        options.warnings,
        ["environment: WEFT_MAXMEMROY is no directive and is passed over; is WEFT_MAXMEMORY meant?"]
    );
}

#[test]
fn a_value_that_is_refused_is_none_when_a_later_one_is_taken() {
    let folder = Folder::new("later");
    let file = folder.file("weft.conf", "cluster-enabled yes\nsave 900\nport 99999\nmaxmemory lots\n");
    let flags = ["--cluster-enabled", "no", "--save", "", "--port", "7000", "--maxmemory", "1gib"];
    let options = read(&[&[file.as_str()], &flags[..]].concat(), &[("WEFT_TIMEOUT", "x")]);
    assert!(options.unwrap_err().starts_with("WEFT_TIMEOUT: timeout x: "), "and what nobody has mended is");
    let environment = [("WEFT_TIMEOUT", "x"), ("WEFT_CLUSTER_ENABLED", "yes")];
    let options = read(&[&[file.as_str()], &flags[..], &["--timeout", "3"]].concat(), &environment).unwrap();
    assert_eq!((options.port, options.values.get("timeout").number), (7000, 3));
    assert_eq!(options.values.get("maxmemory").number, 1 << 30);
    // The other way round nothing is mended.
    let file = folder.file("good.conf", "cluster-enabled no\n");
    assert!(
        read(&[&file, "--cluster-enabled", "yes"], &[])
            .unwrap_err()
            .starts_with("--cluster-enabled: cluster-enabled yes: ")
    );
    // A name that is no directive stays one.
    let file = folder.file("name.conf", "prot 1\n");
    assert!(read(&[&file, "--port", "1"], &[]).unwrap_err().contains("there is no directive 'prot'"));
}

#[test]
fn flags_take_what_their_directive_takes() {
    let options = read(
        &["--bind", "10.0.0.1", "::1", "--requirepass", "--odd", "--save", "", "--unixsocketperm", "770"],
        &[],
    )
    .unwrap();
    assert_eq!(options.bind, ["10.0.0.1", "::1"]);
    assert_eq!(&*options.values.get("requirepass").text, b"--odd");
    assert_eq!(options.unixsocketperm, Some(0o770));
}

#[test]
fn a_file_has_a_length() {
    const FILE_BYTES_MAX: usize = 16 << 20;
    let folder = Folder::new("length");
    let text = |len: usize| format!("#{}\nport 7001\n", "x".repeat(len - "#\nport 7001\n".len()));
    let file = folder.file("whole.conf", &text(FILE_BYTES_MAX));
    assert_eq!(read(&[&file], &[]).map(|options| options.port), Ok(7001));
    let file = folder.file("more.conf", &text(FILE_BYTES_MAX + 1));
    let error = read(&[&file], &[]).expect_err("it is not read in part");
    assert!(error.ends_with("a file of settings has 16 MiB at most"), "{error}");
}
