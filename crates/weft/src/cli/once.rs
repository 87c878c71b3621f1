//! Owns a command from the command line or from lines of standard input, and its repetitions. Does not own the prompt.

use std::io::{BufRead as _, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use weft_client::{Error, Reply};

use super::flags::Options;
use super::line::{self, Line};
use super::link::{Link, Outcome};
use super::output::{Format, Style};
use super::{CLEAR, help, is_connecting, peek, without_reply, words};

/// The command of the command line.
pub(super) fn command(options: &Options, link: &mut Link, format: &Format) -> Result<ExitCode> {
    let mut args: Vec<Vec<u8>> = options.command.iter().map(|word| word.as_bytes().to_vec()).collect();
    if options.quoted_input {
        for arg in &mut args {
            *arg = unquoted(arg)?;
        }
    }
    match line::parse(&args) {
        Line::Help(of) => {
            print!("{}", help::text(of));
            return Ok(ExitCode::SUCCESS);
        }
        Line::Peek(key) => {
            let shown = peek(link, key);
            return Ok(shown.map_or_else(|error| report(link, &error), |()| ExitCode::SUCCESS));
        }
        _ => {}
    }
    if options.stdin {
        args.push(standard_input()?);
    } else if let Some(tag) = &options.stdin_tag {
        let Some(place) = args.iter_mut().find(|arg| arg.as_slice() == tag.as_bytes()) else {
            bail!("Using -X option but tag not match.");
        };
        *place = standard_input()?;
    }
    repeat(options, link, format, &args)
}

/// A command as often as asked for.
pub(super) fn repeat(
    options: &Options,
    link: &mut Link,
    format: &Format,
    args: &[Vec<u8>],
) -> Result<ExitCode> {
    let mut left = options.repeat.unwrap_or(1);
    while left != 0 {
        match link.run(args, &mut |push| write(&format.push(push))) {
            // As redis-cli has it: the error alone, apart from what is read on, and the end.
            Ok(Outcome::Reply(Reply::Error(text))) if options.error_status => {
                eprintln!("{}", String::from_utf8_lossy(&text));
                return Ok(ExitCode::FAILURE);
            }
            Ok(Outcome::Ended) => return Ok(ExitCode::SUCCESS),
            Ok(outcome) => {
                if let Err(error) = shown(link, format, args, outcome) {
                    return Ok(report(link, &error));
                }
            }
            Err(error) => return Ok(report(link, &error)),
        }
        left = if left < 0 { left } else { left - 1 };
        if left != 0
            && let Some(interval) = options.interval
        {
            std::thread::sleep(Duration::from_secs_f64(interval));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The lines of standard input as commands.
pub(super) fn lines(options: &Options, link: &mut Link, format: &Format) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for line in std::io::stdin().lock().lines() {
        let Some(words) = words::arguments(&line?) else {
            println!("Invalid argument(s)");
            continue;
        };
        if words.is_empty() {
            continue;
        }
        match line::parse(&words) {
            Line::Quit => break,
            Line::Clear => print!("{CLEAR}"),
            Line::Help(of) => print!("{}", help::text(of)),
            Line::Wrong(why) => println!("{why}"),
            // Where nobody types there is nothing that it would change.
            Line::Set(_) => {}
            Line::Peek(key) => {
                if let Err(error) = peek(link, key) {
                    code = report(link, &error);
                }
            }
            Line::Connect(address) => {
                link.connect(address);
                if let Err(error) = link.ready() {
                    code = report(link, &error);
                }
            }
            Line::Command(times, args) => {
                for _ in 0..times {
                    match link.run(args, &mut |push| write(&format.push(push))) {
                        Ok(Outcome::Ended) => break,
                        Ok(outcome) => {
                            if options.error_status && matches!(outcome, Outcome::Reply(Reply::Error(_))) {
                                code = ExitCode::FAILURE;
                            }
                            if let Err(error) = shown(link, format, args, outcome) {
                                code = report(link, &error);
                            }
                        }
                        Err(error) if error.is_harmless() => println!("{error}"),
                        Err(error) => {
                            code = report(link, &error);
                            if is_connecting(&error) {
                                return Ok(code);
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(code)
}

/// Prints what is in a key.
fn peek(link: &mut Link, key: &[u8]) -> Result<(), Error> {
    write(&peek::text(link, key)?);
    Ok(())
}

/// Prints what came of a command. A subscriber listens until it is ended.
fn shown(link: &mut Link, format: &Format, args: &[Vec<u8>], outcome: Outcome) -> Result<(), Error> {
    let Outcome::Reply(reply) = outcome else { return Ok(()) };
    let own = format.of_command(args);
    if link.session().subscriptions() > 0 && own.style != Style::Raw {
        println!("Reading messages... (press Ctrl-C to quit)");
    }
    for part in shown_parts(args, &reply) {
        write(&own.reply(part));
    }
    if link.session().subscriptions() > 0 || link.session().is_monitoring() {
        link.listen(&mut |push| write(&format.push(push)))?;
    }
    Ok(())
}

/// A subscription's confirmations are shown one by one, as they come over RESP.
pub(super) fn shown_parts<'a>(args: &[Vec<u8>], reply: &'a Reply) -> Vec<&'a Reply> {
    let subscribes = args.first().is_some_and(|name| name.to_ascii_lowercase().ends_with(b"subscribe"));
    match reply {
        Reply::Array(parts) if subscribes => parts.iter().collect(),
        reply => vec![reply],
    }
}

fn write(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
        // Whoever read our output has seen enough.
        std::process::exit(0);
    }
}

/// Says what ended a command.
fn report(link: &Link, error: &Error) -> ExitCode {
    eprintln!("{}", without_reply(link.config(), error));
    ExitCode::FAILURE
}

fn standard_input() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// An argument in quotes with its escapes resolved.
fn unquoted(arg: &[u8]) -> Result<Vec<u8>> {
    let words = words::arguments(&String::from_utf8_lossy(arg));
    match words.as_deref() {
        Some([word]) => Ok(word.clone()),
        _ => bail!("Invalid quoted string specified."),
    }
}
