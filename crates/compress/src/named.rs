//! Enums whose variants have numbers and stable names, for logs, sample fetches and metrics.

/// Declares such an enum: its doc, its name, then `/// Why.`, `Variant = "name",` each. Numbers are places in its list `ALL`.
macro_rules! named {
    ($(#[doc = $about:literal])+ $type:ident { $($(#[doc = $doc:literal])+ $variant:ident = $name:literal,)* }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum $type {
            $($(#[doc = $doc])+ $variant),*
        }

        impl $type {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [$type] = &[$($type::$variant),*];

            /// The stable short name.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name),*
                }
            }
        }

        #[cfg(test)]
        mod names {
            use super::$type;
            use std::collections::HashSet;

            #[test]
            fn names_and_numbers_are_unique() {
                let names: HashSet<_> = $type::ALL.iter().map(|named| named.name()).collect();
                assert_eq!(names.len(), $type::ALL.len());
                assert!($type::ALL.iter().enumerate().all(|(i, named)| *named as usize == i));
            }
        }
    };
}

pub(crate) use named;
