//! Owns: what the table says of how long a command takes: which of its elements it goes through, told by its arguments
//! and the sizes of its keys. Does not own: which command has which (`spec/commands`), how long one element takes (the
//! engine).

/// What a command goes through, beside the arguments that it is given. Places are those of arguments, the name being 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Nothing more: it takes about the same short time whatever its keys hold.
    Arguments,
    /// All that is at its keys.
    Keys,
    /// All that is at its keys, which it gathers in a collection or puts in an order.
    Gathered,
    /// As much as the smallest of its keys holds, for each of them, gathered.
    Least,
    /// The product of its keys' lengths.
    Product,
    /// All that is at its keys, in blocks and not one by one.
    Blocks,
    /// As many as this argument says, and one without it.
    Count(u8),
    /// As many as this argument says, the same ones several times if it is negative, and one without it.
    Sample(u8),
    /// As many as its option COUNT says from this place on, and the second number without it: all if that is 0.
    Option(u8, u32),
    /// Those between two indexes, which begin at this argument.
    Ranks(u8),
    /// All others.
    Beyond(u8),
    /// Those between two scores.
    Scores(u8),
    /// Those between two members.
    Names(u8),
    /// What MAXLEN or MINID takes away, in blocks.
    Trim,
    /// The elements of a value in the form of DUMP.
    Payload(u8),
    /// All who get the message of a channel, the first argument.
    Receivers,
    /// All keys of the database.
    Walk,
    /// As many keys as its option COUNT says, or this number.
    WalkSome(u32),
}
