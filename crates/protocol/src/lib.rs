//! RESP2, RESP3 and RESPB, without I/O.
