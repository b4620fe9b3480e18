use crate::agent::Agent;
use crate::both::both;
use crate::call::Call;
use crate::error::{AgentError, Code, Result};
use crate::files::json_lines::JsonLines;
use crate::files::sandbox_path::SandboxPath;
use crate::watch::{Queue, Watcher};
use crate::window::Window;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    path: String,
    #[serde(default)]
    recursive: bool,
    window: Window,
}

/// Answered when what is watched is gone; until then only a cancel ends it.
pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(agent, params.path)?;
    let queue = Queue::default();
    let failed = |error: std::io::Error| match error.raw_os_error() {
        // inotify's way to say that the kernel's limit of watches is reached.
        Some(libc::ENOSPC) => {
            AgentError::new(Code::ResourceExhausted, "watch_limit", format!("cannot watch all of {path}: {error}"))
                .hint("watch a smaller tree, or raise fs.inotify.max_user_watches")
        }
        _ => path.failed("watch")(error),
    };
    let mut watcher = Watcher::new(path.as_path().to_path_buf(), params.recursive, &queue).await.map_err(failed)?;
    let watching = async { watcher.run().await.map_err(failed) };
    let mut lines = JsonLines::new(&call, params.window);
    let telling = async {
        while queue.filled().await {
            while let Some(event) = queue.pop() {
                lines.push(&event).await?;
            }
            lines.flush().await?;
        }
        Ok(())
    };
    both(watching, telling).await?;
    Ok(json!({}))
}
