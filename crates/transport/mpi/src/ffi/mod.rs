//! The foreign calls, and safe values around them: the only unsafe code of the crate.
//!
//! # Invariants
//! - **The signatures below are those of `shim/evb_mpi.c`.** The opened library was compiled from the source in this
//!   binary: a hash of the source is in its name, and no other user can write it.
//! - **Calls do not overlap.** All go through [`Shim::call`]. With [`Threads::Many`] it holds a lock. With
//!   [`Threads::One`] it refuses every thread but the one that has the turn, which only that thread can pass on.
//! - **No call comes before the start or after the end.** A [`Shim`] exists after `init` only, and calls after
//!   [`Shim::end`] do nothing: its flag is read and written where calls do not overlap.
//! - **The bytes of an active request stay in place and are touched by no other code.** [`Sending`] and [`Receiving`] own
//!   both the request and the buffer, whose bytes are on the heap (or static), and release the buffer only when MPI has
//!   reported the end of the request. If they are dropped before, the buffer is never freed.
//! - **Lengths fit.** A length is that of the buffer, and all are at most [`MOST_BYTES`].

#![allow(unsafe_code, reason = "calls into the compiled shim")]

mod transfer;

pub(crate) use transfer::{Receiving, Sending};

use crate::{
    Threads,
    library::{self, MpiError},
};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::{
    ffi::{CStr, c_char, c_void},
    fmt,
    mem::ManuallyDrop,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Longest transfer in bytes: MPI counts in C integers.
pub(crate) const MOST_BYTES: usize = i32::MAX as usize;
/// Longest wait at the end for sends that were not taken yet.
const LINGER: Duration = Duration::from_secs(2);
/// Most bytes of the name of an MPI.
const VERSION_BYTES: usize = 256;
/// The mark of no thread: marks are addresses.
const NO_THREAD: usize = 0;

type Buffer = *mut c_void;

macro_rules! calls {
    ($($name:ident: $type:ty,)*) => {
        /// The functions of the shim.
        struct Calls { $($name: $type,)* }

        impl Calls {
            fn load(library: &Library) -> Result<Self, libloading::Error> {
                $(
                    // SAFETY: the library is compiled from the source in this binary, which has the function with this
                    // signature; it is never closed.
                    let $name = unsafe { *library.get::<$type>(concat!("evb_mpi_", stringify!($name)))? };
                )*
                Ok(Self { $($name,)* })
            }
        }
    };
}

calls! {
    init: unsafe extern "C" fn(i32, &mut i32, &mut i32, &mut i32, &mut i32) -> i32,
    version: unsafe extern "C" fn(*mut c_char, i32),
    finalize: unsafe extern "C" fn(),
    abort: unsafe extern "C" fn(i32),
    duplicate: unsafe extern "C" fn() -> u64,
    subset: unsafe extern "C" fn(*const i32, i32, i32) -> u64,
    barrier: unsafe extern "C" fn(),
    progress: unsafe extern "C" fn(),
    share: unsafe extern "C" fn(Buffer, i32),
    send: unsafe extern "C" fn(*const c_void, i32, i32, i32, u64, &mut u64) -> i32,
    receive: unsafe extern "C" fn(Buffer, i32, i32, i32, u64) -> u64,
    broadcast: unsafe extern "C" fn(Buffer, i32, u64) -> u64,
    test: unsafe extern "C" fn(&mut u64, &mut Status) -> i32,
    cancel: unsafe extern "C" fn(&mut u64),
}

/// The result of a receive.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Status {
    /// Number of bytes.
    length: i32,
    /// The rank that sent it.
    pub(crate) rank: i32,
    /// Its tag.
    pub(crate) tag: i32,
}

/// The MPI of this process.
pub(crate) struct Shim {
    calls: Calls,
    /// The thread that may call, or [`NO_THREAD`] until one takes the turn; `None` if any thread may call.
    caller: Option<AtomicUsize>,
    /// The lock around each call, if any thread may call.
    turn: Mutex<()>,
    running: AtomicBool,
    pub(crate) rank: usize,
    pub(crate) size: usize,
    pub(crate) most_tag: i32,
    /// Longest message that this MPI does best to send without asking the receiver, in bytes.
    pub(crate) frame_bytes: usize,
    pub(crate) version: String,
    /// Sends and receives whose endpoints are gone.
    lingering: Mutex<(Vec<Sending>, Vec<Receiving>)>,
}

/// A communicator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Comm(u64);

/// The destination or source of a message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) comm: Comm,
    /// The rank; [`Route::ANY`] in rank or tag matches any for a receive.
    pub(crate) rank: i32,
    pub(crate) tag: i32,
}

impl Route {
    pub(crate) const ANY: i32 = -1;
}

static SHIM: OnceLock<Shim> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

/// Locks, ignoring poison: only calls and moves happen under these locks, so a panic leaves no partial state.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shim {
    /// Starts MPI, once per process.
    pub(crate) fn start(threads: Threads) -> Result<&'static Self, MpiError> {
        let _one = lock(&STARTING);
        if SHIM.get().is_some() {
            return Err(MpiError::Start("it was started in this process before, and can be started once only"));
        }
        let (file, mpicc) = library::shim()?;
        let open = |error: libloading::Error| MpiError::Open { mpicc: mpicc.clone(), reason: error.to_string() };
        // SAFETY: opening runs the initialisers of libmpi, as in any MPI program. Its plugins look for its symbols among
        // the global ones.
        let library = ManuallyDrop::new(unsafe { Library::open(Some(&file), RTLD_NOW | RTLD_GLOBAL) }.map_err(open)?);
        let calls = Calls::load(&library).map_err(open)?;
        let (mut rank, mut size, mut most_tag, mut frame) = (0, 0, 0, 0);
        // SAFETY: the first call, under `STARTING`.
        match unsafe { (calls.init)(threads as i32, &mut rank, &mut size, &mut most_tag, &mut frame) } {
            0 => {}
            1 => return Err(MpiError::Start("something else in this process has started it")),
            _ => return Err(MpiError::Start("it does not bear calls from the threads that were asked for")),
        }
        let version = version(&calls);
        let (rank, size, frame_bytes) = (rank as usize, size as usize, frame as usize);
        let caller = (threads == Threads::One).then(|| AtomicUsize::new(this_thread()));
        let (turn, running, lingering) = (Mutex::default(), AtomicBool::new(true), Mutex::default());
        Ok(SHIM.get_or_init(|| Self {
            calls,
            caller,
            turn,
            running,
            rank,
            size,
            most_tag,
            frame_bytes,
            version,
            lingering,
        }))
    }

    /// Returns true if this thread may call MPI. It takes the turn if no other thread has it.
    #[inline]
    pub(crate) fn is_callable(&self) -> bool {
        let Some(caller) = &self.caller else { return true };
        // Acquires what the calls of the thread before have left.
        caller.load(Ordering::Relaxed) == this_thread()
            || caller.compare_exchange(NO_THREAD, this_thread(), Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Lets another thread make the next call.
    pub(crate) fn pass_on(&self) {
        if let Some(caller) = &self.caller {
            let _another_has_it =
                caller.compare_exchange(this_thread(), NO_THREAD, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Runs `call` alone; returns `None` if MPI has ended.
    #[inline]
    fn call<T>(&self, call: impl FnOnce(&Calls) -> T) -> Option<T> {
        if !self.is_callable() {
            // What is dropped because of this panic must not panic again.
            assert!(std::thread::panicking(), "MPI was started for one thread at a time, and another one has the turn");
            return None;
        }
        let _turn = self.caller.is_none().then(|| lock(&self.turn));
        self.running.load(Ordering::Relaxed).then(|| call(&self.calls))
    }

    /// Ends MPI after all sends have left.
    pub(crate) fn end(&self) {
        let end = Instant::now() + LINGER;
        while !self.settle() && Instant::now() < end {
            std::thread::yield_now();
        }
        // All have sent their last when all are here.
        // SAFETY: alone and while MPI runs.
        self.call(|calls| unsafe { (calls.barrier)() });
        let (sends, receives) = std::mem::take(&mut *lock(&self.lingering));
        sends.into_iter().for_each(Sending::abandon);
        receives.into_iter().for_each(Receiving::cancel);
        self.call(|calls| {
            // SAFETY: alone, while MPI runs, and the last call.
            unsafe { (calls.finalize)() };
            self.running.store(false, Ordering::Relaxed);
        });
    }

    /// Ends all processes of the job.
    pub(crate) fn abort(&self, status: i32) {
        // SAFETY: alone and while MPI runs.
        self.call(|calls| unsafe { (calls.abort)(status) });
    }

    /// A communicator of all ranks; all ranks call this together.
    pub(crate) fn duplicate(&self) -> Comm {
        // SAFETY: alone and while MPI runs.
        Comm(self.call(|calls| unsafe { (calls.duplicate)() }).unwrap_or_default())
    }

    /// A communicator of these ranks; they call this together.
    pub(crate) fn subset(&self, ranks: &[i32], tag: i32) -> Comm {
        // SAFETY: alone and while MPI runs; the ranks are there for the call.
        let call = |calls: &Calls| unsafe { (calls.subset)(ranks.as_ptr(), ranks.len() as i32, tag) };
        Comm(self.call(call).unwrap_or_default())
    }

    /// Copies the bytes of rank 0 into the buffer of each rank.
    pub(crate) fn share(&self, bytes: &mut [u8]) {
        assert!(bytes.len() <= MOST_BYTES, "{} bytes are more than MPI counts", bytes.len());
        // SAFETY: alone and while MPI runs; the call blocks, and the buffer is borrowed for it.
        self.call(|calls| unsafe { (calls.share)(bytes.as_mut_ptr().cast(), bytes.len() as i32) });
    }

    /// Lets MPI make progress.
    pub(crate) fn progress(&self) {
        // SAFETY: alone and while MPI runs.
        self.call(|calls| unsafe { (calls.progress)() });
    }

    /// Drops lingering transfers that are over. Returns true if none is left.
    pub(crate) fn settle(&self) -> bool {
        let (sends, _) = &mut *lock(&self.lingering);
        sends.retain_mut(|sending| !sending.poll());
        sends.is_empty()
    }

    #[inline]
    fn test(&self, request: &mut u64) -> Option<Status> {
        let mut status = Status::default();
        // SAFETY: alone and while MPI runs; the request is active, and its owner has it tested.
        let done = self.call(|calls| unsafe { (calls.test)(request, &mut status) })?;
        (done != 0).then_some(status)
    }
}

impl fmt::Debug for Shim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Shim({})", self.version)
    }
}

/// A number that identifies this thread among the living ones.
#[inline]
fn this_thread() -> usize {
    thread_local! {
        static MARK: u8 = const { 0 };
    }
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

fn version(calls: &Calls) -> String {
    let mut text = [0; VERSION_BYTES];
    // SAFETY: after the start, before anybody else has the calls; it writes that many bytes with a final 0.
    unsafe { (calls.version)(text.as_mut_ptr().cast(), VERSION_BYTES as i32) };
    let text = CStr::from_bytes_until_nul(&text).map(CStr::to_string_lossy).unwrap_or_default();
    text.lines().next().unwrap_or_default().split(", package").next().unwrap_or_default().replace('\t', " ")
}
