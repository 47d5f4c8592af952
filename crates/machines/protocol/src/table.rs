//! The macro behind the table of messages in `message.rs`. From one row for each message it makes the enum, its numbers
//! and lanes, and the code that writes and reads it.

/// Makes [`Message`](crate::Message), [`MessageKind`](crate::wire::MessageKind) and the code of the wire format.
///
/// A row is the lane, the number of the kind, and a variant of which each value has its place on the wire behind `=>`:
/// a field of `wire::Head`, several fields in parentheses, or `body` for a list or a type with its own `Layout`.
macro_rules! messages {
    (
        $(#[$message:meta])*
        kinds { $(
            $(#[$doc:meta])*
            $lane:ident $number:literal $name:ident
            $({ $($(#[$field_doc:meta])* $field:ident: $type:ty => $place:tt),+ $(,)? })?
            $(($value:ident: $value_type:ty => $value_place:tt))?
        ),+ $(,)? }
        packet { $(#[$packet_doc:meta])* $packet:ident($fragments:ident: $packet_type:ty) }
    ) => {
        $(#[$message])*
        pub enum Message<B> {
            $($(#[$doc])* $name $({ $($(#[$field_doc])* $field: $type),+ })? $(($value_type))?,)+
            $(#[$packet_doc])*
            $packet($packet_type),
        }

        /// The kind of a message, with the places of its values in the head and body.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum MessageKind {
            $(
                #[doc = concat!(
                    "[`Message::", stringify!($name), "`]:",
                    $($(" `", stringify!($field), "` in `", stringify!($place), "`;",)+)?
                    $(" `", stringify!($value), "` in `", stringify!($value_place), "`;",)?
                    " lane `", stringify!($lane), "`.",
                )]
                $name = $number,
            )+
        }

        impl MessageKind {
            /// All kinds, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }

        impl<B> Message<B> {
            /// Returns true if the message must keep its order with fragments. An answer must not overtake them.
            pub const fn is_data(&self) -> bool {
                match self {
                    $(Self::$name { .. } => is_data!($lane),)+
                    Self::$packet(_) => true,
                }
            }

            #[inline]
            pub(crate) fn encode(self, mut send: impl FnMut(Head, Body<B>)) {
                let (head, body) = match self {
                    $(Self::$name $({ $($field),+ })? $(($value))? => {
                        let mut wire = (Head::new(MessageKind::$name), Body::Empty);
                        $($(write!(wire, $field, $place);)+)?
                        $(write!(wire, $value, $value_place);)?
                        wire
                    })+
                    Self::$packet($fragments) => {
                        return $fragments.into_iter().for_each(|fragment| {
                            let mut wire = (Head::new(MessageKind::Fragment), Body::Empty);
                            write!(wire, fragment, body);
                            send(wire.0, wire.1);
                        });
                    }
                };
                send(head, body);
            }

            #[inline]
            pub(crate) fn decode(head: &Head, body: B) -> Result<Self, WireError>
            where
                B: AsRef<[u8]>,
            {
                Ok(match head.kind {
                    $($number => Self::$name
                        $({ $($field: read!(head, body, $place)),+ })?
                        $((read!(head, body, $value_place)))?,)+
                    kind => return Err(WireError::UnknownKind(kind)),
                })
            }

            #[inline]
            pub(crate) fn wire_bytes(&self) -> u64 {
                match self {
                    $(Self::$name $({ $($field),+ })? $(($value))? => {
                        HEAD_BYTES as u64
                            $($(+ body_bytes!(B, $field, $place))+)?
                            $(+ body_bytes!(B, $value, $value_place))?
                    })+
                    Self::$packet($fragments) => {
                        $fragments.iter().map(|fragment| HEAD_BYTES as u64 + body_bytes!(B, fragment, body)).sum()
                    }
                }
            }
        }
    };
}

macro_rules! is_data {
    (data) => {
        true
    };
    (control) => {
        false
    };
}

macro_rules! write {
    ($wire:ident, $value:ident, body) => {
        $wire.1 = Layout::write($value, &mut $wire.0)
    };
    ($wire:ident, $value:ident, ($($place:ident),+)) => {
        ($($wire.0.$place),+) = Field::to_wire($value)
    };
    ($wire:ident, $value:ident, $place:ident) => {
        $wire.0.$place = Field::to_wire($value)
    };
}

macro_rules! read {
    ($head:ident, $body:ident, body) => {
        Layout::read($head, $body)?
    };
    ($head:ident, $body:ident, ($($place:ident),+)) => {
        Field::from_wire(($($head.$place),+)).ok_or($head.bad_flag())?
    };
    ($head:ident, $body:ident, $place:ident) => {
        Field::from_wire($head.$place).ok_or($head.bad_flag())?
    };
}

macro_rules! body_bytes {
    ($b:ident, $value:ident, body) => {
        Layout::<$b>::body_bytes($value)
    };
    ($b:ident, $value:ident, $place:tt) => {{
        let _in_head = $value;
        0
    }};
}
