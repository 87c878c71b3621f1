//! Owns: putting a file in the place of another one: ACL SAVE and CONFIG REWRITE. Does not own: what stands in it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, chown};
use std::path::Path;

/// Who may read a file that was not there before: it may hold passwords.
const NEW_FILE_MODE: u32 = 0o600;

/// Writes a file beside the old one and puts it in its place, so that there is one of them whatever happens. It has the
/// mode and, where that is allowed, the owner of the old one; while it is written only this process's user may read it.
/// A symbolic link stays one.
pub(crate) fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".tmp-{}", std::process::id()));
    let beside = path.with_file_name(name);
    // One that an earlier process of this number has left behind: it is not to be written to as it is.
    let _ = fs::remove_file(&beside);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(NEW_FILE_MODE).open(&beside)?;
    let written = file
        .write_all(text)
        .and_then(|()| fs::metadata(&path).map_or(Ok(()), |old| take_over(&file, &beside, &old)))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, &path));
    if written.is_err() {
        // What could not be written is not to be left behind; the first error is the one to tell.
        let _ = fs::remove_file(&beside);
    }
    written
}

/// Gives a file the owner and the mode of another one.
fn take_over(file: &File, path: &Path, old: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    if (own.uid(), own.gid()) != (old.uid(), old.gid()) {
        // Only root may; without it the file stays this process's, as it always was.
        let _ = chown(path, Some(old.uid()), Some(old.gid()));
    }
    file.set_permissions(old.permissions())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("it is there").permissions().mode() & 0o777
    }

    #[test]
    fn the_mode_stays_and_what_is_new_is_secret() {
        let folder = std::env::temp_dir().join(format!("weft-files-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for the test");
        let (path, link) = (folder.join("users.acl"), folder.join("link.acl"));
        replace(&path, b"new").expect("it can be written");
        assert_eq!(mode(&path), 0o600);
        for kept in [0o640, 0o600, 0o444] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).expect("it can be changed");
            // What was left behind by somebody, for all to read, is not what is written to.
            let left = folder.join(format!("users.acl.tmp-{}", std::process::id()));
            fs::write(&left, b"left").expect("it can be written");
            let mut reader = File::open(&left).expect("it can be read");
            replace(&path, b"secret").expect("it can be written");
            assert_eq!((mode(&path), fs::read(&path).expect("it can be read")), (kept, b"secret".to_vec()));
            let mut seen = Vec::new();
            io::Read::read_to_end(&mut reader, &mut seen).expect("it can be read");
            assert_eq!(seen, b"left");
        }
        symlink(&path, &link).expect("a link can be made");
        replace(&link, b"through").expect("it can be written");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(fs::read(&path).expect("it can be read"), b"through");
        assert_eq!(fs::read_dir(&folder).expect("it is a folder").count(), 2, "nothing is left behind");
        fs::remove_dir_all(&folder).expect("it can be removed");
    }
}
