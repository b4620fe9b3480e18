use crate::agent::Agent;
use crate::calls::call::Call;
use crate::calls::json_lines::JsonLines;
use crate::calls::try_join::try_join;
use crate::calls::window::Window;
use crate::error::{AgentError, Code, Result};
use crate::files::sandbox_path::SandboxPath;
use crate::watch::{Queue, Watcher};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    path: String,
    #[serde(default)]
    recursive: bool,
    window: Window,
}

/// Answers when the watched path is removed. Until then only a cancel ends the call.
pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
    let queue = Queue::default();
    let failed = |error: std::io::Error| match error.raw_os_error() {
        // inotify reports ENOSPC when the kernel's limit on watches is reached.
        Some(libc::ENOSPC) => {
            AgentError::new(Code::ResourceExhausted, "watch_limit", format!("cannot watch all of {path}: {error}"))
                .hint("watch a smaller tree, or raise fs.inotify.max_user_watches")
        }
        _ => path.failed("watch")(error),
    };
    let mut watcher = Watcher::new(path.as_path().to_path_buf(), params.recursive, &queue).await.map_err(failed)?;
    let watching = async { watcher.run().await.map_err(failed) };
    let mut lines = JsonLines::new(&call, params.window);
    let reporting = async {
        while queue.filled().await {
            while let Some(event) = queue.pop() {
                lines.push(&event).await?;
            }
            lines.flush().await?;
        }
        Ok(())
    };
    try_join(watching, reporting).await?;
    Ok(json!({}))
}
