//! The filter of a packet socket, which the kernel runs for each frame of the interface: frames of other protocols, runs and
//! nodes never reach the ring.

use crate::{
    frame::{ETHERTYPE, RUN_AT, TO_AT, TYPE_AT},
    interface::Address,
};

/// An instruction of the classic packet filter: code, offset if true, offset if not, and its constant.
pub(super) type Instruction = (u16, u8, u8, u32);

const LOAD_HALF: u16 = 0x28;
const LOAD_WORD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// The program that accepts frames for this node of this run. The kernel has removed a VLAN tag before.
pub(super) fn program(Address { local, run }: Address) -> [Instruction; 8] {
    [
        (LOAD_HALF, 0, 0, TYPE_AT as u32),
        (JUMP_IF_EQUAL, 0, 5, ETHERTYPE.into()),
        (LOAD_WORD, 0, 0, RUN_AT as u32),
        (JUMP_IF_EQUAL, 0, 3, run.swap_bytes()),
        (LOAD_HALF, 0, 0, TO_AT as u32),
        (JUMP_IF_EQUAL, 0, 1, local.0.swap_bytes().into()),
        (RETURN, 0, 0, u32::MAX),
        (RETURN, 0, 0, 0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FrameKind, HEADER_BYTES, Header, Mac, ethernet};
    use evb_core::NodeId;

    /// Runs the program as the kernel does.
    fn accepts(program: &[Instruction], frame: &[u8]) -> bool {
        let (mut at, mut value) = (0, 0);
        loop {
            let (code, yes, no, constant) = program[at];
            let bytes = |count: usize| frame[constant as usize..][..count].iter();
            at += 1;
            match code {
                LOAD_HALF => value = bytes(2).fold(0, |all, &byte| all << 8 | u32::from(byte)),
                LOAD_WORD => value = bytes(4).fold(0, |all, &byte| all << 8 | u32::from(byte)),
                JUMP_IF_EQUAL => at += usize::from(if value == constant { yes } else { no }),
                _ => return constant != 0,
            }
        }
    }

    #[test]
    fn only_frames_for_this_node_of_this_run_are_accepted() {
        let (run, local) = (0x1234_5678, NodeId(0x0102));
        let program = program(Address { local, run });
        for (run_of_frame, to, type_changes) in
            [(run, local, false), (run + 1, local, false), (run, NodeId(0x0201), false), (run, local, true)]
        {
            let mut frame = ethernet(Mac::ALL, Mac([2; 6]), 0);
            frame[13] ^= u8::from(type_changes);
            frame.resize(frame.len() + HEADER_BYTES, 0);
            let header = Header {
                run: run_of_frame,
                to,
                from: NodeId(7),
                length: 0,
                kind: FrameKind::Hello,
                asks: false,
                session: 0,
                number: 0,
                ack: 0,
                limit: 0,
            };
            header.seal(&mut frame[14..]);
            assert_eq!(accepts(&program, &frame), run_of_frame == run && to == local && !type_changes);
        }
    }
}
