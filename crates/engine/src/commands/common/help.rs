//! Owns: HELP of every container: from the command table, or from lines that a command brings. Does not own: what the
//! table says, those lines.

use weft_protocol::table::{self, Argument, ArgumentKind};

use crate::args::Args;
use crate::context::Context;
use crate::engine::command_id;
use crate::error::{Error, Result};
use crate::reply::ReplySink;

/// Answers the lines of a container's subcommands, between a head and the lines about HELP itself. `container` is
/// upper-case.
pub(crate) fn answer(sink: &mut ReplySink<'_>, container: &str, lines: &[&str]) {
    sink.array(lines.len() + 3);
    sink.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    lines.iter().for_each(|line| sink.simple(line));
    sink.simple("HELP");
    sink.simple("    Print this help.");
}

/// Lists the subcommands that are served, each with its arguments and what it does.
pub(crate) fn help(context: &mut Context<'_, '_>, args: &Args<'_>, sink: &mut ReplySink<'_>) -> Result {
    let own = command_id(args);
    let container = own.spec().container.unwrap_or(own);
    let subs = table::subcommands(container).filter(|&sub| context.engine.serves(sub) && sub != own);
    let lines: Vec<String> = subs
        .flat_map(|sub| {
            let (spec, arguments) = (sub.spec(), each(sub.arguments(), " "));
            let blank = if arguments.is_empty() { "" } else { " " };
            [format!("{}{blank}{arguments}", spec.name), format!("    {}.", spec.summary)]
        })
        .collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    answer(sink, container.spec().name, &lines);
    Ok(())
}

fn each(arguments: &[Argument], between: &str) -> String {
    arguments.iter().map(one).collect::<Vec<_>>().join(between)
}

fn one(argument: &Argument) -> String {
    let is_token = argument.kind == ArgumentKind::PureToken;
    let inner = match argument.kind {
        ArgumentKind::PureToken => argument.token.unwrap_or(argument.name).to_owned(),
        ArgumentKind::Oneof => each(argument.arguments, "|"),
        ArgumentKind::Block => each(argument.arguments, " "),
        _ => format!("<{}>", argument.display_text.unwrap_or(argument.name)),
    };
    let token = argument.token.filter(|token| !is_token && !token.is_empty());
    let is_choice = argument.kind == ArgumentKind::Oneof && (token.is_some() || !argument.optional);
    let inner = if is_choice { format!("({inner})") } else { inner };
    let repeated = match (argument.multiple, token.filter(|_| argument.multiple_token)) {
        (true, Some(token)) => format!("{inner} [{token} {inner} ...]"),
        (true, None) => format!("{inner} [{inner} ...]"),
        _ => inner,
    };
    let text = token.map_or(repeated.clone(), |token| format!("{token} {repeated}"));
    if argument.optional { format!("[{text}]") } else { text }
}

/// The answer to a subcommand with too many arguments or unknown options.
pub(crate) fn subcommand_syntax(args: &Args<'_>) -> Error {
    let container = args.spec.container.map_or("", |container| container.spec().name);
    let sub = args.bytes(1);
    let sub = String::from_utf8_lossy(&sub[..sub.len().min(128)]);
    Error::err(format!("unknown subcommand or wrong number of arguments for '{sub}'. Try {container} HELP."))
}
