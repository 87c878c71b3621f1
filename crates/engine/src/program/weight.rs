//! Owns: how many bytes of memory a program takes in the form that it runs in, and an expression. Does not own: how
//! many all of them may take (`super::stored`).

use super::expr::{Each, Expr, Part, Segment};
use super::keys::{Found, Keys};
use super::steps::{Command, Fail, For, Over, Param, Program, Step, What, each_expr};
use super::value::Value;

/// What the allocator adds to a piece of memory, or more.
const PIECE: usize = 16;

/// A piece of memory for so many of these; none for none.
const fn piece<T>(count: usize) -> usize {
    if count == 0 { 0 } else { count * size_of::<T>() + PIECE }
}

impl Program {
    /// Bytes of memory that it takes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let mut bytes = size_of::<Self>() + of_steps(&self.steps);
        each_expr(&self.steps, &mut |expr| bytes += of_expr(expr));
        bytes += self.description.len() + piece::<Param>(self.params.len());
        for param in &self.params {
            bytes += PIECE + param.name.len() + param.default.as_ref().map_or(0, of_value);
        }
        bytes
            + match &self.keys {
                Keys::Declared(exprs) => {
                    piece::<Expr>(exprs.len()) + exprs.iter().map(of_expr).sum::<usize>()
                }
                Keys::Found(found) => {
                    let paths = found.iter().map(|found| piece::<usize>(found.depth())).sum::<usize>();
                    piece::<Found>(found.len()) + paths
                }
                Keys::World(at, _) => at.len() + PIECE,
            }
    }
}

/// Steps without their expressions.
fn of_steps(steps: &[Step]) -> usize {
    let pointer = steps.first().map_or(0, |step| step.at.block.len() + PIECE);
    let own = |step: &Step| match &step.what {
        What::Command(command) => piece::<Command>(1) + piece::<Expr>(command.args.len()),
        What::Let(all) => piece::<(usize, Expr)>(all.len()),
        What::Switch(_, cases, _) => {
            let values = cases.iter().map(|(values, _)| piece::<Expr>(values.len())).sum::<usize>();
            piece::<(Box<[Expr]>, Box<[Step]>)>(cases.len()) + values
        }
        What::For(each) => {
            piece::<For>(1) + if let Over::Range(_) = each.over { piece::<Expr>(3) } else { 0 }
        }
        What::Fail(_) => piece::<Fail>(1),
        What::If(..) | What::Break(_) | What::Return(_) | What::Block(_) => 0,
    };
    let inside = |step: &Step| step.what.blocks().map(of_steps).sum::<usize>();
    pointer + piece::<Step>(steps.len()) + steps.iter().map(|step| own(step) + inside(step)).sum::<usize>()
}

impl Expr {
    /// Bytes of memory that it owns.
    pub(crate) fn weight(&self) -> usize {
        of_expr(self)
    }
}

/// What an expression owns, and those inside of it.
fn of_expr(expr: &Expr) -> usize {
    let mut bytes = 0;
    expr.each(&mut |expr| {
        bytes += match expr {
            Expr::Literal(value) => of_value(value),
            Expr::Path(_, path) => {
                let names = path.iter().map(|segment| match segment {
                    Segment::Name(name) => name.len() + PIECE,
                    Segment::Index(_) => 0,
                });
                piece::<Segment>(path.len()) + names.sum::<usize>()
            }
            Expr::Template(parts) => {
                let texts = parts.iter().map(|part| match part {
                    Part::Text(text) => text.len() + PIECE,
                    Part::Value(_) => 0,
                });
                piece::<Part>(parts.len()) + texts.sum::<usize>()
            }
            Expr::List(all) | Expr::Call(_, all) | Expr::And(all) | Expr::Or(all) | Expr::Coalesce(all) => {
                piece::<Expr>(all.len())
            }
            Expr::Object(members) => {
                let names = members.iter().map(|(name, _)| name.len() + PIECE).sum::<usize>();
                piece::<(Box<[u8]>, Expr)>(members.len()) + names
            }
            Expr::If(_) => piece::<Expr>(3),
            Expr::Each(_) => piece::<Each>(1),
            Expr::Var(_) | Expr::Now(_) => 0,
        };
    });
    bytes
}

fn of_value(value: &Value) -> usize {
    let extent = value.extent();
    extent.values as usize * (size_of::<Value>() + PIECE) + extent.bytes as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight(steps: &str) -> usize {
        Program::parse(format!(r#"{{"params":[{{"name":"p"}}],"steps":[{steps}]}}"#).as_bytes())
            .unwrap()
            .weight()
    }

    #[test]
    fn everything_that_stands_in_a_program_weighs_something() {
        let nothing = weight("");
        let text = "x".repeat(100);
        for step in [
            r#"["SET","k1",1]"#,
            r#"{"let":{"x":[1,2,3,4]}}"#,
            r#"{"let":{"x":{"+":[1,2,3]}}}"#,
            r#"{"let":{"x":{"object":{"name":"${p}"}}}}"#,
            r#"{"if":"${p.a.b}","then":[["PING"]]}"#,
            r#"{"switch":"${p}","cases":[{"is":1,"then":[]},{"is":[1,2],"then":[["PING"]]}]}"#,
            r#"{"for":"i","range":[0,1],"do":[["PING"]]}"#,
            r#"{"for":"i","in":{"map":{"in":"${p}","as":"x","give":"${x}"}},"do":[]}"#,
            r#"{"fail":"NO","message":"${p} is not"}"#,
            r#"{"return":{"if":["${p}",1,2]}}"#,
            r#"{"return":{"literal":[1,{"a":"b"}]}}"#,
        ] {
            let one = weight(step) - nothing;
            assert!(one > size_of::<Step>(), "{step}: {one}");
            // A hundred of them take a hundred times as much, but for what they share.
            let many = weight(&[step; 100].join(",")) - nothing;
            assert!(many > 60 * one && many <= 100 * one, "{step}: {many} of {one}");
        }
        for step in [
            format!(r#"["ECHO","{text}"]"#),
            format!(r#"["ECHO","{text}${{p}}"]"#),
            format!(r#"{{"return":"${{p.{text}}}"}}"#),
            format!(r#"{{"return":{{"object":{{"{text}":1}}}}}}"#),
        ] {
            assert!(weight(&step) > weight(&step.replace(&text, "x")) + 90, "{step}");
        }
    }
}
