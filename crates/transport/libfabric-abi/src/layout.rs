//! Structures with the list of their fields.

use crate::*;

/// A structure of the headers.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its name in C.
    pub name: &'static str,
    /// Its length here in bytes.
    pub bytes: usize,
    /// The names of its fields in C, with their offsets here in bytes.
    pub fields: Vec<(&'static str, usize)>,
}

/// Declares structures of C by their names there.
macro_rules! structures {
    ($($(#[$attribute:meta])* $c:literal $name:ident { $($field:ident: $kind:ty,)* })*) => { $(
        #[doc = concat!("`", $c, "`.")]
        $(#[$attribute])*
        #[repr(C)]
        #[allow(missing_docs, missing_debug_implementations, reason = "the headers document the fields")]
        pub struct $name { $(pub $field: $kind,)* }

        impl $name {
            pub(crate) fn layout() -> $crate::Layout {
                let fields = vec![$((stringify!($field), std::mem::offset_of!(Self, $field)),)*];
                $crate::Layout { name: $c, bytes: size_of::<Self>(), fields }
            }
        }
    )* };
}

/// All structures.
pub fn layouts() -> Vec<Layout> {
    vec![
        Provider::layout(),
        Info::layout(),
        TxAttr::layout(),
        RxAttr::layout(),
        EpAttr::layout(),
        DomainAttr::layout(),
        FabricAttr::layout(),
        AvAttr::layout(),
        CqAttr::layout(),
        CntrAttr::layout(),
        MrAttr::layout(),
        IoVec::layout(),
        Msg::layout(),
        MsgTagged::layout(),
        MsgRma::layout(),
        RmaIov::layout(),
        CqEntry::layout(),
        CqError::layout(),
        Fid::layout(),
        FidOps::layout(),
        Fabric::layout(),
        FabricOps::layout(),
        Domain::layout(),
        DomainOps::layout(),
        Mr::layout(),
        MrOps::layout(),
        Av::layout(),
        AvOps::layout(),
        Cq::layout(),
        CqOps::layout(),
        Cntr::layout(),
        CntrOps::layout(),
        Eq::layout(),
        EqOps::layout(),
        Ep::layout(),
        EpOps::layout(),
        CmOps::layout(),
        MsgOps::layout(),
        TaggedOps::layout(),
        RmaOps::layout(),
        AtomicOps::layout(),
        CollectiveOps::layout(),
    ]
}
