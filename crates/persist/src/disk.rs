//! Owns: what this crate asks of a disk: files of one folder, written at places, synced, renamed. Does not own: what
//! stands in them.
//!
//! Two disks: a folder of the file system ([`Folder`]), and one that loses power ([`simulated`]), which proofs run on.
//! Whatever is to outlive a cut is synced: a file by [`File::sync`], its name by [`Disk::sync_names`].

pub mod simulated;

use std::fmt::Debug;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of one folder.
pub trait Disk: Send + Sync + Debug {
    /// The names of all files.
    fn names(&self) -> io::Result<Vec<String>>;
    /// An empty file of this name, whatever it held.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// The same, for this process alone as long as it is open: `WouldBlock` where another one has it.
    fn create_alone(&self, name: &str) -> io::Result<Arc<dyn File>> {
        self.create(name)
    }
    /// The file of this name.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;
    /// Gives a file another name, whatever that held.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Names are on the disk.
    fn sync_names(&self) -> io::Result<()>;
    /// As people find it.
    fn shown(&self, name: &str) -> String;
    /// Whether a file is the one that has this name.
    fn has(&self, name: &str, file: &dyn File) -> io::Result<bool>;
    /// Whether it is still for this process alone: somebody may have put another folder in its place.
    fn is_ours(&self) -> bool {
        true
    }
}

/// An open file. Whoever has it writes and reads at places of his own.
pub trait File: Send + Sync + Debug {
    /// Bytes, room that was only asked for included.
    fn bytes(&self) -> io::Result<u64>;
    /// Asks for room up to so many bytes, which read as zeros, so that writing there cannot fail for want of it.
    fn allocate(&self, bytes: u64) -> io::Result<()>;
    /// Writes all bytes, or fails with any part of them written.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;
    /// Reads up to as many bytes as there is room for; fewer at the end only.
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Cuts the file off, or fills it with zeros.
    fn set_len(&self, bytes: u64) -> io::Result<()>;
    /// All that was written is on the disk.
    fn sync(&self) -> io::Result<()>;
    /// What it is, whatever its name: no other file has the same numbers.
    fn identity(&self) -> io::Result<(u64, u64)>;
}

/// What went wrong with which file: what an error of a [`Folder`] says.
#[derive(Debug)]
struct Named {
    path: PathBuf,
    cause: io::Error,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.cause)
    }
}

impl std::error::Error for Named {}

/// Says which file an error is of.
fn of(path: &Path) -> impl FnOnce(io::Error) -> io::Error + '_ {
    move |cause| io::Error::new(cause.kind(), Named { path: path.into(), cause })
}

/// What an error says beside the file that it is of: for whoever names that himself, and for clients, who need not know
/// where things are.
#[must_use]
pub fn cause(error: &io::Error) -> String {
    let named = error.get_ref().and_then(|error| error.downcast_ref::<Named>());
    named.map_or_else(|| error.to_string(), |named| named.cause.to_string())
}

/// A folder of the file system. Its errors, and those of its files, say which file they are of.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Nobody else uses the folder as long as this is open.
    lock: Option<fs::File>,
}

/// Who may read what is kept: it holds all data. A folder that is there already stays as it is.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The file that is locked.
pub const LOCK: &str = "lock";

impl Folder {
    /// The folder, which is made if it is not there, for this process alone.
    ///
    /// # Errors
    /// Where it cannot be made; `WouldBlock` where another process has it.
    pub fn lock(path: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path).map_err(of(path))?;
        let name = path.join(LOCK);
        let mut options = fs::File::options();
        options.create(true).truncate(false).write(true).mode(FILE_MODE);
        let lock = options.open(&name).map_err(of(&name))?;
        // The folder's own name: what is in it is of no use without.
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::File::open(parent).and_then(|parent| parent.sync_all()).map_err(of(parent))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.into(), lock: Some(lock) }),
            Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(fs::TryLockError::Error(error)) => Err(of(&name)(error)),
        }
    }
    /// The folder as it is, for tools that only read.
    #[must_use]
    pub fn unlocked(path: &Path) -> Self {
        Self { path: path.into(), lock: None }
    }
}

impl Disk for Folder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(of(&self.path))? {
            // What has a name that is no text is none of this crate's.
            if let Ok(name) = entry.map_err(of(&self.path))?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = fs::File::options();
        options.create(true).truncate(true).read(true).write(true).mode(FILE_MODE);
        Opened::by(&options, self.path.join(name))
    }
    fn create_alone(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let path = self.path.join(name);
        let mut options = fs::File::options();
        options.create(true).truncate(false).read(true).write(true).mode(FILE_MODE);
        loop {
            let file = options.open(&path).map_err(of(&path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(fs::TryLockError::Error(error)) => return Err(of(&path)(error)),
            }
            // Whoever had it may have given it another name or removed it meanwhile: then it is not this one.
            let ours = file.metadata().map_err(of(&path))?;
            if fs::metadata(&path).is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
                file.set_len(0).map_err(of(&path))?;
                return Ok(Arc::new(Opened { file, path }));
            }
        }
    }
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let writes = self.lock.is_some();
        Opened::by(fs::File::options().read(true).write(writes), self.path.join(name))
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (self.path.join(from), self.path.join(to));
        // Who may read the file that was there may read the one in its place, and nobody else.
        if let Ok(old) = fs::metadata(&to) {
            fs::set_permissions(&from, old.permissions()).map_err(of(&from))?;
        }
        fs::rename(from, &to).map_err(of(&to))
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        fs::remove_file(&path).map_err(of(&path))
    }
    fn sync_names(&self) -> io::Result<()> {
        fs::File::open(&self.path).and_then(|folder| folder.sync_all()).map_err(of(&self.path))
    }
    fn shown(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
    fn has(&self, name: &str, file: &dyn File) -> io::Result<bool> {
        let path = self.path.join(name);
        match fs::metadata(&path) {
            Ok(named) => Ok((named.dev(), named.ino()) == file.identity()?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(of(&path)(error)),
        }
    }
    fn is_ours(&self) -> bool {
        let locked = self.lock.as_ref().and_then(|lock| lock.metadata().ok());
        let named = fs::metadata(self.path.join(LOCK)).ok();
        let number = |of: fs::Metadata| (of.dev(), of.ino());
        locked.map(number).is_some_and(|locked| named.map(number) == Some(locked))
    }
}

/// An open file of a folder, with the name that it was opened by.
#[derive(Debug)]
struct Opened {
    file: fs::File,
    path: PathBuf,
}

/// A file by itself, to be read.
///
/// # Errors
/// Where it cannot be opened.
pub fn open(path: &Path) -> io::Result<Arc<dyn File>> {
    Opened::by(fs::File::options().read(true), path.into())
}

impl Opened {
    fn by(options: &fs::OpenOptions, path: PathBuf) -> io::Result<Arc<dyn File>> {
        let file = options.open(&path).map_err(of(&path))?;
        Ok(Arc::new(Self { file, path }))
    }
}

impl File for Opened {
    fn bytes(&self) -> io::Result<u64> {
        self.file.metadata().map(|of| of.len()).map_err(of(&self.path))
    }
    fn allocate(&self, bytes: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        match rustix::io::retry_on_intr(|| fallocate(&self.file, FallocateFlags::empty(), 0, bytes)) {
            Ok(()) => Ok(()),
            // A file system that cannot promise room: the length alone keeps readers and writers on the same path.
            Err(rustix::io::Errno::OPNOTSUPP) => self.set_len(bytes),
            Err(error) => Err(of(&self.path)(error.into())),
        }
    }
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, at).map_err(of(&self.path))
    }
    fn read(&self, at: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], at + done as u64) {
                Ok(0) => break,
                Ok(len) => done += len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(of(&self.path)(error)),
            }
        }
        Ok(done)
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes).map_err(of(&self.path))
    }
    fn sync(&self) -> io::Result<()> {
        self.file.sync_data().map_err(of(&self.path))
    }
    fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|of| (of.dev(), of.ino())).map_err(of(&self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_writers_alone_and_what_was_renamed_is_not_touched() {
        let place = std::env::temp_dir().join(format!("weft-alone-{}", std::process::id()));
        fs::create_dir_all(&place).expect("a folder");
        let disk = Folder::unlocked(&place);
        let first = disk.create_alone("a.tmp").expect("nobody has it");
        first.write(0, b"first").expect("room");
        let second = disk.create_alone("a.tmp");
        assert_eq!(second.expect_err("somebody has it").kind(), io::ErrorKind::WouldBlock);
        let mut read = [0; 8];
        assert_eq!(first.read(0, &mut read).expect("it is there"), 5, "it was not emptied");
        // Its name is free as soon as it has another one, whether it is closed or not.
        disk.rename("a.tmp", "a").expect("both are here");
        let second = disk.create_alone("a.tmp").expect("nobody has it");
        second.write(0, b"2").expect("room");
        drop(first);
        assert_eq!(fs::read(place.join("a")).expect("it is there"), b"first");
        // What a writer that was killed has left is emptied.
        drop(second);
        assert_eq!(disk.create_alone("a.tmp").expect("nobody has it").bytes().expect("it is there"), 0);
        fs::remove_dir_all(place).expect("it is ours");
    }

    /// Whoever reads an error knows which file it is of, once.
    #[test]
    fn an_error_names_its_file_once() {
        let place = std::env::temp_dir().join(format!("weft-named-{}", std::process::id()));
        fs::create_dir_all(place.join("folder")).expect("a folder");
        let disk = Folder::unlocked(&place);
        let shown = |name: &str| place.join(name).display().to_string();
        fs::write(place.join("read"), b"bytes").expect("room");
        let read = disk.open("read").expect("it is there");
        let nowhere = Folder::unlocked(&place.join("none"));
        let errors = [
            (shown("none"), disk.open("none").expect_err("it is not there")),
            (shown("none"), disk.remove("none").expect_err("it is not there")),
            (shown("none"), nowhere.names().expect_err("it is not there")),
            (shown("none"), nowhere.sync_names().expect_err("it is not there")),
            (shown("none/a"), nowhere.create("a").expect_err("it is not there")),
            (shown("none/a"), nowhere.create_alone("a").expect_err("it is not there")),
            (shown("folder"), disk.create("folder").expect_err("a folder is in the way")),
            (shown("folder"), disk.rename("read", "folder").expect_err("a folder is in the way")),
            // Opened for reading only.
            (shown("read"), read.write(0, b"1").expect_err("it may not be written to")),
            (shown("read"), read.set_len(1).expect_err("it may not be written to")),
            (shown("read"), read.allocate(1).expect_err("it may not be written to")),
            (shown("read"), Folder::lock(&place.join("read")).expect_err("a file is in the way")),
        ];
        for (name, error) in errors {
            let text = error.to_string();
            let rest =
                text.strip_prefix(&name).unwrap_or_else(|| panic!("{text} does not begin with {name}"));
            let said = cause(&error);
            assert!(rest == format!(": {said}") || rest.is_empty(), "{text}: {said}");
            assert!(!said.contains(&*place.to_string_lossy()), "{said}");
            let problem = crate::Problem::io(name.clone(), &error).to_string();
            assert_eq!(problem, format!("{name} cannot be read: {said}"));
        }
        fs::remove_dir_all(place).expect("it is ours");
    }
}
