//! Owns: calculating: integers stay exact, and what does not fit is an error. Does not own: which function is meant by
//! which name (`super::functions`).

use super::expr::Fault;
use super::functions::Function;
use super::value::{Number, Value};
use crate::excerpt::shown;

/// The number that a value is.
fn number(value: &Value) -> Result<Number, Fault> {
    value.number().ok_or_else(|| match value {
        Value::Text(bytes) => format!("'{}' is not a number", shown(bytes)).into(),
        other => format!("expected a number, met a {}", other.type_name()).into(),
    })
}

/// The integer that a value is.
pub(crate) fn whole(value: &Value) -> Result<i64, Fault> {
    match number(value)? {
        Number::Int(value) => Ok(value),
        Number::Float(value) => Err(format!("expected an integer, met {value}").into()),
    }
}

/// The integer of a number, its fraction cut off; null if there is none.
pub(super) fn int(value: &Value) -> Value {
    match super::text::number(value).number() {
        Some(Number::Int(value)) => Value::Int(value),
        Some(Number::Float(value)) => fitting(value.trunc()).map_or(Value::Null, Value::Int),
        None => Value::Null,
    }
}

/// The integer that a double without a fraction is.
fn fitting(value: f64) -> Option<i64> {
    const END: f64 = 9_223_372_036_854_775_808.0;
    (-END..END).contains(&value).then_some(value as i64)
}

fn float(value: f64) -> Result<Number, Fault> {
    if value.is_finite() { Ok(Number::Float(value)) } else { Err("the result is no finite number".into()) }
}

fn overflow() -> Fault {
    "the result does not fit in 64 bits".into()
}

/// Both as integers, or both as doubles.
fn both(
    one: Number,
    two: Number,
    ints: fn(i64, i64) -> Option<i64>,
    floats: fn(f64, f64) -> f64,
) -> Result<Number, Fault> {
    match (one, two) {
        (Number::Int(one), Number::Int(two)) => ints(one, two).map(Number::Int).ok_or_else(overflow),
        _ => float(floats(one.float(), two.float())),
    }
}

pub(super) fn call(function: Function, arguments: &[Value]) -> Result<Value, Fault> {
    if function == Function::Sum {
        let Value::List(list) = &arguments[0] else {
            return match &arguments[0] {
                Value::Null => Ok(Value::Int(0)),
                other => Err(format!("expected a list, met a {}", other.type_name()).into()),
            };
        };
        return fold(list, Number::Int(0), |sum, next| both(sum, next, i64::checked_add, |a, b| a + b));
    }
    let first = number(&arguments[0])?;
    let rest = &arguments[1..];
    let result = match function {
        Function::Add => {
            return fold(rest, first, |sum, next| both(sum, next, i64::checked_add, |a, b| a + b));
        }
        Function::Multiply => {
            return fold(rest, first, |product, next| both(product, next, i64::checked_mul, |a, b| a * b));
        }
        Function::Subtract if rest.is_empty() => both(Number::Int(0), first, i64::checked_sub, |a, b| a - b)?,
        Function::Subtract => {
            return fold(rest, first, |left, next| both(left, next, i64::checked_sub, |a, b| a - b));
        }
        Function::Divide | Function::Div | Function::Mod => divide(function, first, number(&rest[0])?)?,
        Function::Abs => match first {
            Number::Int(value) => Number::Int(value.checked_abs().ok_or_else(overflow)?),
            Number::Float(value) => Number::Float(value.abs()),
        },
        _ => match first {
            Number::Int(_) => first,
            Number::Float(value) => {
                let rounded = match function {
                    Function::Floor => value.floor(),
                    Function::Ceil => value.ceil(),
                    _ => value.round(),
                };
                Number::Int(fitting(rounded).ok_or_else(overflow)?)
            }
        },
    };
    Ok(result.into())
}

fn fold(
    values: &[Value],
    first: Number,
    add: impl Fn(Number, Number) -> Result<Number, Fault>,
) -> Result<Value, Fault> {
    values.iter().try_fold(first, |sum, value| add(sum, number(value)?)).map(Value::from)
}

fn divide(function: Function, one: Number, two: Number) -> Result<Number, Fault> {
    if two.float() == 0.0 {
        return Err("division by 0".into());
    }
    let (Number::Int(a), Number::Int(b)) = (one, two) else {
        let (a, b) = (one.float(), two.float());
        return match function {
            Function::Divide => float(a / b),
            Function::Div => fitting((a / b).floor()).map(Number::Int).ok_or_else(overflow),
            _ => float(a - b * (a / b).floor()),
        };
    };
    // The one quotient that does not fit: the least integer by -1. It leaves nothing.
    if b == -1 {
        return match function {
            Function::Mod => Ok(Number::Int(0)),
            _ => a.checked_neg().map(Number::Int).ok_or_else(overflow),
        };
    }
    let (quotient, rest) = (a / b, a % b);
    let below = rest != 0 && (rest < 0) != (b < 0);
    match function {
        Function::Divide if rest == 0 => Ok(Number::Int(quotient)),
        Function::Divide => float(a as f64 / b as f64),
        Function::Div => Ok(Number::Int(quotient - i64::from(below))),
        _ => Ok(Number::Int(if below { rest + b } else { rest })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(function: Function, arguments: &[Value]) -> Result<Value, String> {
        call(function, arguments).map_err(Into::into)
    }

    #[test]
    fn integers_stay_exact_and_what_does_not_fit_is_an_error() {
        let (min, max) = (Value::Int(i64::MIN), Value::Int(i64::MAX));
        let one = Value::Int(1);
        assert_eq!(run(Function::Add, &[max.clone(), Value::Int(-1)]).unwrap(), Value::Int(i64::MAX - 1));
        for (function, arguments) in [
            (Function::Add, vec![max.clone(), one.clone()]),
            (Function::Subtract, vec![min.clone(), one]),
            (Function::Subtract, vec![min.clone()]),
            (Function::Multiply, vec![max, Value::Int(2)]),
            (Function::Divide, vec![min.clone(), Value::Int(-1)]),
            (Function::Abs, vec![min.clone()]),
            (Function::Round, vec![Value::Float(1e19)]),
        ] {
            assert!(run(function, &arguments).unwrap_err().contains("does not fit"), "{function:?}");
        }
        assert_eq!(run(Function::Mod, &[min, Value::Int(-1)]).unwrap(), Value::Int(0));
        assert!(run(Function::Divide, &[Value::Int(1), Value::Int(0)]).is_err());
        assert!(run(Function::Multiply, &[Value::Float(1e300), Value::Float(1e300)]).is_err());
    }

    #[test]
    fn quotients_are_rounded_down_and_what_is_left_has_the_sign_of_the_divisor() {
        for (a, b, quotient, rest) in
            [(7, 2, 3, 1), (-7, 2, -4, 1), (7, -2, -4, -1), (-7, -2, 3, -1), (6, 3, 2, 0)]
        {
            let pair = [Value::Int(a), Value::Int(b)];
            assert_eq!(run(Function::Div, &pair).unwrap(), Value::Int(quotient), "{a} {b}");
            assert_eq!(run(Function::Mod, &pair).unwrap(), Value::Int(rest), "{a} {b}");
            assert_eq!(run(Function::Divide, &pair).unwrap(), Value::Float(a as f64 / b as f64));
            let floats = [Value::Float(a as f64), Value::Float(b as f64)];
            assert_eq!(run(Function::Mod, &floats).unwrap(), Value::Int(rest), "{a} {b}");
        }
        assert!(matches!(run(Function::Divide, &[Value::Int(6), Value::Int(3)]), Ok(Value::Int(2))));
    }
}
