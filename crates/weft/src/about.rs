//! What the program says of itself: `weft help`, `weft version`, completions for shells, man pages.
//!
//! Owns the words that stand for flags, what is said of flags that are only elsewhere, and the two commands that
//! print. The texts are those of each command's own module.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::error::{ContextKind, ContextValue};
use clap::{Args, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man as Page;
use weft_engine::near::nearest;
use weft_protocol::table;

/// Print completions for a shell
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weft completions bash > ~/.local/share/bash-completion/completions/weft
  weft completions fish > ~/.config/fish/completions/weft.fish
  weft completions zsh > ~/.zfunc/_weft                         (with ~/.zfunc in fpath)")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

/// Print a man page, or write all of them
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  weft man | man -l -
  weft man bench | man -l -
  weft man token create | man -l -
  weft man --folder ~/.local/share/man/man1")]
pub(crate) struct Man {
    /// The command it is about, such as `cli` or `token create`; without one, `weft` as a whole
    #[arg(value_name = "COMMAND", num_args = 0..=2, conflicts_with = "folder")]
    command: Vec<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,
}

/// `weft help`, `weft help COMMAND` and `weft version` as the flags that they stand for; or what is wrong with what
/// stands behind them.
pub(crate) fn as_flags(words: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, String> {
    let words: Vec<OsString> = words.collect();
    let flag = |words: &[&OsString], flag: &str| {
        words.iter().map(|&word| word.clone()).chain([flag.into()]).collect::<Vec<_>>()
    };
    let asks_for_help = |word: &OsString| ["help", "--help", "-h"].iter().any(|help| word == help);
    // Of the words that are no command there is nothing to say but what all say.
    let is_no_command = |word: &OsString| asks_for_help(word) || word == "version";
    Ok(match &words[..] {
        [weft, word] if word == "help" => flag(&[weft], "--help"),
        [weft, word, of] if word == "help" && is_no_command(of) => flag(&[weft], "--help"),
        [weft, word, of] if word == "version" && asks_for_help(of) => flag(&[weft], "--help"),
        [weft, word, command] if word == "help" => flag(&[weft, command], "--help"),
        [weft, word] if word == "version" => flag(&[weft], "--version"),
        [_, word, cli, command, ..] if word == "help" && cli == "cli" => {
            return Err(format!(
                "what explains a command of the server: weft cli help {}",
                command.display()
            ));
        }
        [weft, word, command, part] if word == "help" && has_part(command, part) => {
            flag(&[weft, command, part], "--help")
        }
        [_, word, command, more, ..] if word == "help" => {
            let (command, more) = (command.display(), more.display());
            return Err(format!("help takes one command: what is '{more}' for? Try: weft help {command}"));
        }
        [_, word, more, ..] if word == "version" => {
            return Err(format!("version takes nothing: what is '{}' for?", more.display()));
        }
        _ => words,
    })
}

/// Why a flag that other programs of its kind have is not here, if it is such a flag.
pub(crate) fn lacking(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let command = std::env::args_os().nth(1)?;
    let (list, other) = match command.to_str()? {
        "cli" => (crate::cli::LACKING, "redis-cli"),
        "bench" => (crate::bench::LACKING, "redis-benchmark"),
        _ => return None,
    };
    let (name, why) = list.iter().find(|(name, _)| name == flag)?;
    Some(format!("weft {}: {name}, which {other} has, cannot be had yet: {why}", command.display()))
}

/// An error without the tip of another flag, unless what was typed is near to it, and without that to put an unknown
/// flag behind `--`: there it would be taken for a command, or a file.
pub(crate) fn without_wrong_tips(mut error: clap::Error) -> clap::Error {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (typed, tip) = (context(ContextKind::InvalidArg), context(ContextKind::SuggestedArg));
    if let (Some(typed), Some(tip)) = (typed, tip)
        && nearest(typed.trim_start_matches('-'), [tip.trim_start_matches('-')]).is_none()
    {
        error.remove(ContextKind::SuggestedArg);
        // It is the usage of that flag.
        error.remove(ContextKind::Usage);
    }
    let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) else { return error };
    let good: Vec<_> = tips.into_iter().filter(|tip| !tip.to_string().contains("as a value, use")).collect();
    if !good.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(good));
    }
    error
}

/// Whether a command of `weft` has such a subcommand.
fn has_part(command: &OsStr, part: &OsStr) -> bool {
    let weft = crate::Cli::command();
    weft.find_subcommand(command).is_some_and(|command| command.find_subcommand(part).is_some())
}

/// An error without the tip of another command, unless what was typed is near to one.
pub(crate) fn with_near_command(mut error: clap::Error, weft: &clap::Command) -> clap::Error {
    error.remove(ContextKind::SuggestedSubcommand);
    error.remove(ContextKind::Suggested);
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let names = weft.get_subcommands().map(clap::Command::get_name).chain(["help", "version"]);
    if let Some(name) = nearest(typed, names) {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![name.into()]));
    }
    error
}

/// What stands for a command of the server, which somebody took for one of `weft`.
pub(crate) fn of_server(error: &clap::Error) -> Option<String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (is_help, command) = match &words[..] {
        [help, command, ..] if help == "help" => (true, command),
        [command, ..] => (false, command),
        [] => return None,
    };
    debug_assert_eq!(error.kind(), clap::error::ErrorKind::InvalidSubcommand);
    table::by_name(command.as_bytes())?;
    let with = if is_help { "help " } else { "" };
    Some(format!("weft: {command} is a command of the server: weft cli {with}{command}"))
}

pub(crate) fn completions(options: &Completions, mut weft: clap::Command) -> Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut weft, "weft", &mut text);
    std::io::stdout().write_all(&text)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn man(options: &Man, weft: clap::Command) -> Result<ExitCode> {
    // The directives of the server are not clap's: they stand behind its page.
    let mut weft = weft
        .mut_subcommand("serve", |serve| serve.after_help(crate::serve::help()))
        .mut_subcommand("gateway", |gateway| gateway.after_help(crate::gateway::HELP));
    weft.build();
    if let Some(folder) = &options.folder {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let mut commands = vec![&weft];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let path = folder.join(format!("{}.1", name(command)));
            std::fs::write(&path, page(command)?).with_context(|| path.display().to_string())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = &weft;
    for name in &options.command {
        command = command.find_subcommand(name).with_context(|| {
            format!("there is no command '{name}'; `{} --help` lists them", bin_name(command))
        })?;
    }
    std::io::stdout().write_all(&page(command)?)?;
    Ok(ExitCode::SUCCESS)
}

/// `weft token create`
fn bin_name(command: &clap::Command) -> &str {
    command.get_bin_name().unwrap_or("weft")
}

/// `weft`, `weft-serve`, `weft-token-create`
fn name(command: &clap::Command) -> String {
    bin_name(command).replace(' ', "-")
}

fn page(command: &clap::Command) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let source = concat!("weft ", env!("CARGO_PKG_VERSION"));
    Page::new(command.clone()).title(name(command)).source(source).manual("Weft").render(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stand_for_flags() {
        let of = |line: &str| {
            let words = as_flags(line.split(' ').map(OsString::from)).unwrap();
            words.iter().map(|word| word.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("weft help"), "weft --help");
        assert_eq!(of("weft help serve"), "weft serve --help");
        assert_eq!(of("weft help token create"), "weft token create --help");
        assert_eq!(of("weft version"), "weft --version");
        for same in ["weft help help", "weft help version", "weft help --help", "weft version --help"] {
            assert_eq!(of(same), "weft --help", "{same}");
        }
        for same in ["weft", "weft cli help", "weft cli version", "weft bench -t get"] {
            assert_eq!(of(same), same);
        }
        for (line, said) in [
            ("weft help bench extra", "weft help bench"),
            ("weft help cli get", "weft cli help get"),
            ("weft version x", "'x'"),
        ] {
            let wrong = as_flags(line.split(' ').map(OsString::from)).unwrap_err();
            assert!(wrong.contains(said), "{line}: {wrong}");
        }
    }
}
