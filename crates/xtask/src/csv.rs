//! Generates `spec/commands.csv`: one line per command, for spreadsheets and scripts.
//!
//! It owns the columns. Lists are joined by blanks; a field is quoted when it must be (RFC 4180).

use crate::model::Command;
use crate::syntax;

/// First line of the file.
const HEADER: &str = "\
    name,group,module,since,deprecated_since,arity,flags,acl_categories,first_key,last_key,key_step,opcode,\
    module_number,command_number,layout,syntax,complexity,summary";

/// The whole file.
#[must_use]
pub fn generate(commands: &[Command]) -> String {
    let mut text = format!("{HEADER}\n");
    for command in commands {
        text.push_str(&line(command));
        text.push('\n');
    }
    text
}

fn line(command: &Command) -> String {
    let optional = |value: &Option<String>| value.clone().unwrap_or_default();
    let respb = command.respb.as_ref();
    let fields = [
        command.full_name(),
        command.group.clone(),
        optional(&command.module),
        command.since.clone(),
        optional(&command.deprecated_since),
        command.arity.to_string(),
        command.flags.join(" "),
        command.acl_categories.join(" "),
        command.keys.first.to_string(),
        command.keys.last.to_string(),
        command.keys.step.to_string(),
        respb.map_or_else(String::new, |respb| respb.opcode.to_string()),
        respb.and_then(|respb| respb.module).map_or_else(String::new, |number| number.to_string()),
        respb.and_then(|respb| respb.command).map_or_else(String::new, |number| number.to_string()),
        respb.map_or_else(String::new, crate::notation::layout),
        syntax::line(command),
        command.complexity.clone(),
        command.summary.clone(),
    ];
    fields.map(quoted).join(",")
}

fn quoted(field: String) -> String {
    if field.contains([',', '"', '\n']) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
}

#[cfg(test)]
mod tests {
    #[test]
    fn quoting() {
        assert_eq!(super::quoted("a b".to_owned()), "a b");
        assert_eq!(super::quoted("a,b".to_owned()), "\"a,b\"");
        assert_eq!(super::quoted("say \"a\"".to_owned()), "\"say \"\"a\"\"\"");
    }
}
