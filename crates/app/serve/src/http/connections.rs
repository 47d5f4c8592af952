//! Accepts connections, a bounded number of them. When all places are taken, one of the lowest role is closed, the oldest
//! first: those without a token before those who watch, and these before operators. So no one is locked out by a lower role.

use super::guard::Shown;
use crate::access::Role;
use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use std::{collections::VecDeque, pin::pin, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{AbortHandle, JoinSet},
    time::Instant,
};
use tokio_rustls::TlsAcceptor;

/// Changes, with an error, when the service ends.
pub(crate) type Ended = watch::Receiver<()>;

/// Most connections at once.
const MOST_CONNECTIONS: usize = 128;
/// Longest time for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest buffer of a connection in bytes: the longest head of a request.
const BUFFER: usize = 64 << 10;
/// Longest time for replies that were not sent when the service ends.
const LAST_REPLIES: Duration = Duration::from_secs(1);
/// Wait after an error of the system, such as too many open files.
const PAUSE: Duration = Duration::from_millis(50);
/// Most connections that are accepted in a [`WINDOW`]; others wait for the next. It bounds what a flood costs.
const MOST_IN_WINDOW: u32 = 64;
const WINDOW: Duration = Duration::from_millis(64);

/// Serves connections until the sender of `ended` is dropped, by TLS if there is an acceptor for it. Requests that were made
/// until then get their replies.
pub(crate) async fn serve(listener: TcpListener, router: Router, tls: Option<TlsAcceptor>, ended: Ended) {
    let mut connections = JoinSet::new();
    let mut end = ended.clone();
    tokio::select! {
        () = accept(listener, router, tls, ended, &mut connections) => {}
        _ = end.changed() => {}
    }
    let replies = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(LAST_REPLIES, replies).await.is_err() {
        tracing::debug!("connections are open at the end");
    }
}

/// Accepts connections for ever.
async fn accept(
    listener: TcpListener,
    router: Router,
    tls: Option<TlsAcceptor>,
    ended: Ended,
    connections: &mut JoinSet<()>,
) {
    let mut open = Connections::default();
    let mut pace = Pace { since: Instant::now(), count: 0 };
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        while connections.try_join_next().is_some() {}
        pace.wait().await;
        if !open.make_room() {
            // Every place belongs to an admin.
            continue;
        }
        let shown = Shown::default();
        let connection = connections.spawn(greet(stream, router.clone(), shown.clone(), tls.clone(), ended.clone()));
        open.0.push_back((connection, shown));
    }
}

/// Agrees on TLS, if that is wanted, and serves the connection.
async fn greet(stream: TcpStream, router: Router, shown: Shown, tls: Option<TlsAcceptor>, ended: Ended) {
    let _as_it_is = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve_one(stream, router, shown, ended).await };
    match tokio::time::timeout(HEAD_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve_one(stream, router, shown, ended).await,
        Ok(Err(error)) => tracing::debug!(%error, "no TLS"),
        Err(_) => tracing::debug!("no TLS in time"),
    }
}

async fn serve_one(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    shown: Shown,
    mut ended: Ended,
) {
    let service = TowerToHyperService::new(router.layer(Extension(shown)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(BUFFER);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let served = tokio::select! {
        served = connection.as_mut() => served,
        _ = ended.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "a connection ended");
    }
}

/// The open connections in the order of their coming.
#[derive(Default)]
struct Connections(VecDeque<(AbortHandle, Shown)>);

impl Connections {
    /// Makes room for one more. Returns false if there is none.
    fn make_room(&mut self) -> bool {
        if self.0.len() >= MOST_CONNECTIONS {
            self.0.retain(|(connection, _)| !connection.is_finished());
        }
        if self.0.len() < MOST_CONNECTIONS {
            return true;
        }
        let lowest = self.0.iter().enumerate().min_by_key(|(_, (_, shown))| shown.role());
        let place = lowest.filter(|(_, (_, shown))| shown.role() < Some(Role::Admin)).map(|(place, _)| place);
        let gone = place.and_then(|place| self.0.remove(place));
        gone.map(|(connection, _)| connection.abort()).is_some()
    }
}

/// The pace at which connections are accepted.
struct Pace {
    since: Instant,
    count: u32,
}

impl Pace {
    /// Counts a connection, and waits for the next window if there are too many in this one.
    async fn wait(&mut self) {
        if self.since.elapsed() >= WINDOW {
            *self = Self { since: Instant::now(), count: 0 };
        }
        self.count += 1;
        if self.count > MOST_IN_WINDOW {
            tokio::time::sleep_until(self.since + WINDOW).await;
            *self = Self { since: Instant::now(), count: 1 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those who watch give way to others, the oldest first; an admin gives way to none.
    #[tokio::test]
    async fn a_role_cannot_lock_out_a_higher_one() {
        let mut open = Connections::default();
        let add = |open: &mut Connections, role: Option<Role>| {
            let shown = Shown::default();
            role.iter().for_each(|role| shown.show(*role));
            let has_room = open.make_room();
            if has_room {
                open.0.push_back((tokio::spawn(std::future::pending::<()>()).abort_handle(), shown));
            }
            has_room
        };
        let count = |open: &Connections, role| open.0.iter().filter(|(_, shown)| shown.role() == role).count();
        (0..2 * MOST_CONNECTIONS).for_each(|_| assert!(add(&mut open, Some(Role::Watch))));
        assert_eq!(open.0.len(), MOST_CONNECTIONS);
        assert!(add(&mut open, Some(Role::Admin)) && add(&mut open, Some(Role::Operate)));
        (0..MOST_CONNECTIONS).for_each(|_| assert!(add(&mut open, None)));
        let counts = [None, Some(Role::Watch), Some(Role::Operate), Some(Role::Admin)].map(|role| count(&open, role));
        assert_eq!(counts, [1, MOST_CONNECTIONS - 3, 1, 1]);
        (0..MOST_CONNECTIONS - 1).for_each(|_| assert!(add(&mut open, Some(Role::Admin))));
        assert!(!add(&mut open, Some(Role::Admin)) && !add(&mut open, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_accepted_at_a_bounded_pace_and_a_visitor_at_once() {
        let start = Instant::now();
        let mut pace = Pace { since: start, count: 0 };
        for _ in 0..10 * MOST_IN_WINDOW {
            pace.wait().await;
        }
        assert_eq!(start.elapsed(), 9 * WINDOW);
        tokio::time::advance(2 * WINDOW).await;
        let quiet = Instant::now();
        pace.wait().await;
        assert_eq!(quiet.elapsed(), Duration::ZERO);
    }

    /// The reply to a request that is being fulfilled when the service ends is sent, and then all is over.
    #[tokio::test]
    async fn a_request_gets_its_reply_when_the_service_ends() {
        use axum::routing::get;
        use std::{
            io::{Read, Write},
            sync::Arc,
        };
        use tokio::sync::Notify;
        let [asked, fulfilled] = [(); 2].map(|()| Arc::new(Notify::new()));
        let (begin, go) = (asked.clone(), fulfilled.clone());
        let handler = move || async move {
            begin.notify_one();
            go.notified().await;
            "fulfilled"
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let (end, ended) = watch::channel(());
        let serving = tokio::spawn(serve(listener, Router::new().route("/", get(handler)), None, ended));
        let client = tokio::task::spawn_blocking(move || {
            let mut stream = std::net::TcpStream::connect(address).expect("the service listens");
            stream.write_all(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n").expect("the service reads");
            let mut reply = String::new();
            stream.read_to_string(&mut reply).expect("the service replies");
            reply
        });
        asked.notified().await;
        drop(end);
        // Everything that the end brings about happens before the reply.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        fulfilled.notify_one();
        let reply = client.await.expect("the client ends");
        assert!(reply.ends_with("fulfilled"), "{reply}");
        serving.await.expect("the service ends");
    }
}
