//! Owns: programs and triggers as resources, `/v1/programs/…` and `/v1/triggers/…`: which command a request is. Does
//! not own: what is asked beside it (`super::resources`), the commands.
//!
//! | path | methods | commands |
//! |---|---|---|
//! | `/v1/programs` | GET; POST | PROGRAM LIST; EVAL |
//! | `/v1/programs/NAME` | GET, HEAD; PUT; DELETE | PROGRAM GET; SET; DEL |
//! | `/v1/programs/NAME/run`, `dryrun`, `explain` | POST | PROGRAM RUN, DRYRUN, EXPLAIN |
//! | `/v1/programs/NAME/stats` | GET | PROGRAM STATS |
//! | `/v1/triggers`, `/v1/triggers/NAME` | GET; GET, HEAD, PUT, DELETE | TRIGGER LIST; GET, SET, DEL |
//! | `/v1/triggers/NAME/enable`, `disable`, `test` | POST | TRIGGER ENABLE, DISABLE, TEST |
//! | `/v1/triggers/NAME/stats` | GET | TRIGGER STATS |

use weft_engine::args::Slots;
use weft_engine::resource::{Asked, Does, Stored};

use super::Content;
use super::answer::Answer;
use super::head::Method;
use super::json;
use super::resources::{Asks, Composed};
use super::routes;
use super::target;

impl Asks<'_> {
    /// A request below `/v1/programs` or `/v1/triggers`.
    pub(super) fn stored(&self, body: Content, slots: &mut Slots) -> Composed {
        let path = self.head.path.of(self.request);
        let (stored, rest) = match (path.strip_prefix(b"/v1/programs"), path.strip_prefix(b"/v1/triggers")) {
            (Some(rest), _) => (Stored::Program, rest),
            (None, Some(rest)) => (Stored::Trigger, rest),
            (None, None) => return Err(routes::missing()),
        };
        let parts: Vec<&[u8]> = rest.split(|&byte| byte == b'/').skip(1).collect();
        word(slots, if stored == Stored::Program { b"PROGRAM" } else { b"TRIGGER" });
        match parts[..] {
            [] => self.all_stored(stored, body, slots),
            [name] if !name.is_empty() => self.one_stored((stored, name), body, slots),
            [name, verb] if !name.is_empty() => self.do_stored((stored, name, verb), body, slots),
            _ => Err(routes::missing()),
        }
    }

    fn all_stored(&self, stored: Stored, body: Content, slots: &mut Slots) -> Composed {
        let is_program = stored == Stored::Program;
        match self.head.method {
            Method::Get | Method::Head => {
                self.only(&[b"match"])?;
                word(slots, b"LIST");
                if let Some(pattern) = self.parameter(b"match")? {
                    word(slots, b"MATCH");
                    word(slots, &pattern);
                }
                Ok(None)
            }
            Method::Post if is_program => {
                self.only(&[])?;
                let (program, arguments) = json::run(body.place(self.request).body).map_err(bad)?;
                word(slots, b"EVAL");
                word(slots, &program);
                arguments.iter().for_each(|argument| word(slots, argument));
                Ok(None)
            }
            _ => Err(routes::other_methods(if is_program { "GET, HEAD, POST" } else { "GET, HEAD" })),
        }
    }

    fn one_stored(&self, (stored, name): (Stored, &[u8]), body: Content, slots: &mut Slots) -> Composed {
        let put = self.head.method == Method::Put;
        self.only(if put { &[b"nx", b"xx"] } else { &[] })?;
        let value = put.then(|| body.into_slot(self.request, slots));
        let (verb, does): (&[u8], _) = match self.head.method {
            Method::Get | Method::Head => (b"GET", Does::Read),
            Method::Put => (b"SET", Does::Write),
            Method::Delete => (b"DEL", Does::Remove),
            _ => return Err(routes::other_methods("GET, HEAD, PUT, DELETE")),
        };
        word(slots, verb);
        self.name(name, slots)?;
        if let Some((value, _)) = value {
            slots.list.push(value);
        }
        Ok(Some(Asked { stored: Some(stored), ..self.conditions(does)? }))
    }

    fn do_stored(
        &self,
        (stored, name, verb): (Stored, &[u8], &[u8]),
        body: Content,
        slots: &mut Slots,
    ) -> Composed {
        self.only(&[])?;
        let reads = verb == b"stats";
        let is_known = match stored {
            Stored::Program => matches!(verb, b"run" | b"dryrun" | b"explain" | b"stats"),
            Stored::Trigger => matches!(verb, b"enable" | b"disable" | b"test" | b"stats"),
        };
        if !is_known {
            return Err(routes::missing());
        }
        match self.head.method {
            Method::Get | Method::Head if reads => {}
            Method::Post if !reads => {}
            _ => return Err(routes::other_methods(if reads { "GET, HEAD" } else { "POST" })),
        }
        word(slots, verb);
        self.name(name, slots)?;
        let body = body.place(self.request).body;
        match verb {
            b"test" => word(slots, body),
            b"run" | b"dryrun" | b"explain" if !body.is_empty() => {
                json::arguments(body).map_err(bad)?.iter().for_each(|argument| word(slots, argument));
            }
            _ => {}
        }
        Ok(None)
    }

    fn name(&self, name: &[u8], slots: &mut Slots) -> Result<(), Box<Answer>> {
        target::push(self.request, name, false, slots).map_err(bad)
    }
}

fn word(slots: &mut Slots, word: &[u8]) {
    slots.aside(|side| side.extend_from_slice(word));
}

fn bad(why: String) -> Box<Answer> {
    Answer::error(400, &why)
}
