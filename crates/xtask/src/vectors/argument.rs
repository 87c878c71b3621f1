//! The argument form of a request: what stands in `value.args`, and the RESP array and the ARGV frame that say the
//! same.
//!
//! It owns the text of an argument. Runs of equal arguments stay runs.

use std::borrow::Cow;

use serde_json::{Value as Json, json};

use super::bytes::Bytes;

/// One argument.
#[derive(Clone, Debug)]
pub enum Arg {
    /// Bytes.
    Bytes(Bytes),
    /// An integer field.
    Int(i64),
    /// A double field and its canonical text.
    Double(f64, Cow<'static, str>),
    /// A keyword that the layout implies.
    Keyword(String),
}

impl Arg {
    /// The argument on a text wire.
    #[must_use]
    pub fn text(&self) -> Bytes {
        match self {
            Arg::Bytes(bytes) => bytes.clone(),
            Arg::Int(value) => Bytes::from(value.to_string().as_str()),
            Arg::Double(_, text) => Bytes::from(text.as_ref()),
            Arg::Keyword(word) => Bytes::from(word.as_str()),
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Arg::Bytes(bytes) => bytes.to_value(),
            Arg::Int(value) => json!({"int": value.to_string()}),
            Arg::Double(value, text) => json!({"double": text, "bits": format!("{:016x}", value.to_bits())}),
            Arg::Keyword(word) => json!({"keyword": word}),
        }
    }
}

/// Arguments in order; each entry is a group and how often it stands there.
#[derive(Clone, Debug, Default)]
pub struct Args(Vec<(Vec<Arg>, usize)>);

impl Args {
    /// Byte arguments.
    #[must_use]
    pub fn texts(texts: &[&str]) -> Self {
        let mut args = Args::default();
        texts.iter().for_each(|text| args.push(Arg::Bytes(Bytes::from(*text))));
        args
    }

    /// Appends one.
    pub fn push(&mut self, arg: Arg) {
        self.0.push((vec![arg], 1));
    }

    /// Appends `count` times a group.
    pub fn push_repeat(&mut self, group: Vec<Arg>, count: usize) {
        if count > 0 {
            self.0.push((group, count));
        }
    }

    /// How many arguments there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.iter().map(|(group, count)| group.len() * count).sum()
    }

    /// With the command's words in front.
    #[must_use]
    pub fn named(&self, name: &str) -> Args {
        let mut args = Args::texts(&[name]);
        args.0.extend(self.0.iter().cloned());
        args
    }

    /// As JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let entry = |(group, count): &(Vec<Arg>, usize)| {
            let group: Vec<Json> = group.iter().map(Arg::to_json).collect();
            if *count == 1 { group } else { vec![json!({"repeat": group, "count": count})] }
        };
        Json::Array(self.0.iter().flat_map(entry).collect())
    }

    /// The RESP array of bulks.
    #[must_use]
    pub fn to_resp(&self) -> Bytes {
        let bulk = |arg: &Arg| {
            let text = arg.text();
            Bytes::from(format!("${}\r\n", text.len()).as_str()).join(&text).and(b"\r\n")
        };
        Bytes::from(format!("*{}\r\n", self.count()).as_str()).join(&self.each(bulk))
    }

    /// `[u32 total]`, then each argument with its `u32` length.
    #[must_use]
    pub fn sized(&self) -> Bytes {
        let items = self.each(|arg| {
            let text = arg.text();
            Bytes::of(&(text.len() as u32).to_be_bytes()).join(&text)
        });
        Bytes::of(&(items.len() as u32).to_be_bytes()).join(&items)
    }

    /// Every argument through `encode`, runs kept as runs.
    fn each(&self, encode: impl Fn(&Arg) -> Bytes) -> Bytes {
        let mut out = Bytes::new();
        for (group, count) in &self.0 {
            let mut unit = Bytes::new();
            group.iter().for_each(|arg| unit.append(&encode(arg)));
            if *count <= 2 {
                (0..*count).for_each(|_| out.append(&unit));
            } else {
                out.push_repeat(&unit.expand(), *count);
            }
        }
        out
    }
}

impl Args {
    /// The same arguments as bytes, which is what ARGV and passthrough carry.
    #[must_use]
    pub fn as_texts(&self) -> Args {
        let group = |group: &Vec<Arg>| group.iter().map(|arg| Arg::Bytes(arg.text())).collect();
        Args(self.0.iter().map(|(args, count)| (group(args), *count)).collect())
    }

    /// Puts another text in the place of the argument that is `old`.
    pub fn replace_text(&mut self, old: &str, new: &str) {
        for (group, _) in &mut self.0 {
            for arg in
                group.iter_mut().filter(|arg| matches!(arg, Arg::Bytes(bytes) if *bytes == Bytes::from(old)))
            {
                *arg = Arg::Bytes(Bytes::from(new));
            }
        }
    }
}
