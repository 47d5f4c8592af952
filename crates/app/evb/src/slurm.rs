//! Slurm, by its commands. `squeue` knows a job until some minutes after its end; `sacct` knows it longer, where a cluster keeps
//! accounts.

use crate::stored_sweep::RESOLVED;
use std::{
    collections::BTreeMap,
    fmt, io,
    path::Path,
    process::{Command, Stdio},
};

/// States after which a task does nothing more (`man squeue`, "JOB STATE CODES").
const ENDED: [&str; 10] = [
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
];

/// Number of times that a task begins its part when its evb is killed.
const TRIES: usize = 3;

/// The reason why Slurm did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SlurmError {
    /// The reason, with the command.
    pub message: String,
    /// Advice to the user.
    pub hint: &'static str,
}

/// A job of Slurm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlurmJob {
    id: String,
    cluster: Option<String>,
}

/// The state of a task. It is shown in the words of Slurm, such as `PENDING (Resources)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskState {
    /// The word of Slurm, such as `RUNNING`.
    pub state: String,
    /// Why it waits, or why it has ended, in a word of Slurm.
    pub reason: String,
}

impl TaskState {
    /// True if the task does nothing more.
    pub fn is_over(&self) -> bool {
        ENDED.contains(&self.state.as_str())
    }
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason.as_str() {
            "" => f.write_str(&self.state),
            reason => write!(f, "{} ({reason})", self.state),
        }
    }
}

impl SlurmJob {
    /// The job with a name that [`submit`](Self::submit) has returned.
    pub fn named(name: &str) -> Self {
        match name.split_once(';') {
            Some((id, cluster)) => Self { id: id.to_owned(), cluster: Some(cluster.to_owned()) },
            None => Self { id: name.to_owned(), cluster: None },
        }
    }

    /// The command line that submits a batch script with more options of `sbatch`.
    pub fn command_line(script: &Path, options: &[String]) -> String {
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_./=:,%@+".contains(letter);
        let word = |text: String| if text.chars().all(is_plain) { text } else { quoted(&text) };
        let words = options.iter().cloned().chain([script.display().to_string()]);
        ["sbatch".to_owned()].into_iter().chain(words.map(word)).collect::<Vec<_>>().join(" ")
    }

    /// Submits a batch script with more options of `sbatch`. Returns the name of the job: its number, and behind a semicolon its
    /// cluster, if there are several.
    ///
    /// # Errors
    /// There is no `sbatch`, or it refuses.
    pub fn submit(script: &Path, options: &[String]) -> Result<String, SlurmError> {
        let mut command = Command::new("sbatch");
        command.arg("--parsable").args(options).arg(script);
        let hint = "are the options behind `--` those of `sbatch`? The script is there, and can be submitted by hand";
        let told = output(&mut command, hint)?;
        // A cluster may print more before it.
        let name =
            told.lines().last().map(str::trim).filter(|name| name.starts_with(|first: char| first.is_ascii_digit()));
        name.map(str::to_owned).ok_or_else(|| SlurmError { message: format!("sbatch names no job: {told:?}"), hint })
    }

    /// Takes a look at the states of the tasks, by their numbers, in addition to those that were seen before. True if they all are
    /// over.
    ///
    /// # Errors
    /// There is no `squeue`, or it does not answer.
    pub fn look(&self, states: &mut BTreeMap<usize, TaskState>) -> Result<bool, SlurmError> {
        let tasks = self.tasks()?;
        let is_over = tasks.values().all(TaskState::is_over);
        states.extend(tasks);
        let is_forgotten = states.is_empty() || !states.values().all(TaskState::is_over);
        if is_over && is_forgotten {
            states.extend(self.accounts());
        }
        Ok(is_over)
    }

    /// The tasks that `squeue` knows; none if it has forgotten the job.
    fn tasks(&self) -> Result<BTreeMap<usize, TaskState>, SlurmError> {
        let mut command = Command::new("squeue");
        command.args(["--noheader", "--array", "--states=all", "--format=%K %T %r", "--jobs", &self.id]);
        match output(self.on_cluster(&mut command), "is the cluster up? `squeue` must answer here") {
            Ok(text) => Ok(text.lines().filter_map(task).collect()),
            Err(error) if error.message.contains("Invalid job id") => Ok(BTreeMap::new()),
            Err(error) => Err(error),
        }
    }

    /// The tasks in the accounts of the cluster; none if it keeps no accounts.
    fn accounts(&self) -> BTreeMap<usize, TaskState> {
        let mut command = Command::new("sacct");
        command.args([
            "--noheader",
            "--parsable2",
            "--allocations",
            "--array",
            "--format=JobID,State",
            "--jobs",
            &self.id,
        ]);
        let text = output(self.on_cluster(&mut command), "").unwrap_or_default();
        text.lines().filter_map(account).collect()
    }

    fn on_cluster<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.args(self.cluster.as_ref().map(|cluster| format!("--clusters={cluster}")))
    }
}

/// A line of `squeue`: the number of a task, its state and the reason.
fn task(line: &str) -> Option<(usize, TaskState)> {
    let mut words = line.split_whitespace();
    let (number, state) = (words.next()?.parse().ok()?, words.next()?.to_owned());
    let reason = words.collect::<Vec<_>>().join(" ");
    Some((number, TaskState { state, reason: if reason == "None" { String::new() } else { reason } }))
}

/// A line of `sacct`: `JOB_TASK|STATE`, in which a state may have more words, as in `CANCELLED by 0`.
fn account(line: &str) -> Option<(usize, TaskState)> {
    let (job, state) = line.split_once('|')?;
    let number = job.split_once('_')?.1.parse().ok()?;
    let (state, reason) = state.split_once(' ').unwrap_or((state, ""));
    Some((number, TaskState { state: state.to_owned(), reason: reason.to_owned() }))
}

/// The batch script for some tasks of an array job of Slurm.
///
/// A task that the cluster requeues, after the failure of its machine or when others go first, goes on with its part. So does one
/// whose evb was killed, such as for its memory, at once.
pub(crate) fn script(folder: &Path, program: &Path, name: &str, parts: usize, tasks: &str) -> String {
    let folder = folder.display().to_string();
    let log = format!("{}/part-%a.log", folder.replace('%', "%%"));
    let [quoted_folder, quoted_program] = [folder, program.display().to_string()].map(|text| quoted(&text));
    format!(
        r#"#!/bin/sh
#SBATCH --job-name=evb-{name}
#SBATCH --array={tasks}
#SBATCH --output="{log}"
#SBATCH --open-mode=append
#SBATCH --requeue
folder={quoted_folder}
for try in $(seq {TRIES}); do
    {quoted_program} simulate "$folder/{RESOLVED}" --points "$SLURM_ARRAY_TASK_ID/{parts}" \
        --out "$folder/part-$SLURM_ARRAY_TASK_ID" --resume --threads "${{SLURM_CPUS_PER_TASK:-1}}" --quiet
    status=$?
    # The task has done its work if the verdict is not good (1) or cannot be told (3).
    case $status in 0 | 1 | 3) exit 0 ;; esac
    # Whatever evb refuses it would refuse again. If it was killed, its part goes on.
    [ $status -gt 128 ] || break
done
exit $status
"#
    )
}

/// A word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// What a command prints if it succeeds.
fn output(command: &mut Command, hint: &'static str) -> Result<String, SlurmError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => SlurmError {
            message: format!("there is no `{program}` in PATH"),
            hint: "do this on a machine of the cluster from which jobs are submitted; `evb sweep submit --dry-run` only writes the script",
        },
        _ => SlurmError { message: format!("{program}: {error}"), hint },
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&output.stderr);
    Err(SlurmError { message: format!("{program}: {}: {}", output.status, told.trim()), hint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_slurm_prints_is_understood() {
        let state = |state: &str, reason: &str| TaskState { state: state.into(), reason: reason.into() };
        assert_eq!(task("3 PENDING Resources"), Some((3, state("PENDING", "Resources"))));
        assert_eq!(task("  12 RUNNING None"), Some((12, state("RUNNING", ""))));
        assert_eq!(task("1 PENDING Nodes required are DOWN"), Some((1, state("PENDING", "Nodes required are DOWN"))));
        assert_eq!(task("CLUSTER: far"), None);
        assert_eq!(account("7_4|OUT_OF_MEMORY"), Some((4, state("OUT_OF_MEMORY", ""))));
        assert_eq!(account("7_5|CANCELLED by 0"), Some((5, state("CANCELLED", "by 0"))));
        assert_eq!(account("7_[6-9]|PENDING"), None);
        assert!(state("TIMEOUT", "").is_over() && !state("COMPLETING", "").is_over());
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        let line = |script: &str| SlurmJob::command_line(Path::new(script), &["--time=1:00:00".into()]);
        assert_eq!(line("/out/submit.sh"), "sbatch --time=1:00:00 /out/submit.sh");
        assert_eq!(line("/my out's/submit.sh"), r"sbatch --time=1:00:00 '/my out'\''s/submit.sh'");
    }

    #[test]
    fn a_job_may_be_on_another_cluster() {
        assert_eq!(SlurmJob::named("12"), SlurmJob { id: "12".into(), cluster: None });
        assert_eq!(SlurmJob::named("12;far"), SlurmJob { id: "12".into(), cluster: Some("far".into()) });
    }
}
