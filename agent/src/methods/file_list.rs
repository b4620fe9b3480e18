use crate::agent::Agent;
use crate::calls::call::Call;
use crate::calls::json_lines::JsonLines;
use crate::calls::window::Window;
use crate::error::Result;
use crate::files::dir::Dir;
use crate::files::info::FileInfo;
use crate::files::sandbox_path::{MAX_PATH_BYTES, SandboxPath};
use crate::files::walk::{Limits, Visit, Walk, is_gone, is_unreadable};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Params {
    path: String,
    depth: Option<usize>,
    window: Window,
}

pub async fn run(agent: &Agent, mut call: Call) -> Result<Value> {
    let params: Params = call.params()?;
    let path = SandboxPath::resolve(&agent.args, params.path)?;
    let failed = path.failed("list");
    let limits = Limits {
        depth: params.depth.unwrap_or(1),
        // A call could not name a deeper entry.
        path_bytes: MAX_PATH_BYTES,
        skip_unreadable: true,
    };
    let dir = Dir::open_for_reading(path.as_path()).map_err(&failed)?;
    let mut walk = Walk::new(dir, limits);
    let mut lines = JsonLines::new(&call, params.window);
    let mut count = 0;
    while let Some(visit) = walk.next().await.map_err(&failed)? {
        let Visit::Entry(name) = visit else { continue };
        match FileInfo::of_entry(walk.dir(), &name, &walk.path_of(&name)) {
            Ok(info) => {
                lines.push(&info).await?;
                count += 1;
            }
            Err(error) if is_gone(&error) || is_unreadable(&error) => {}
            Err(error) => return Err(failed(error)),
        }
    }
    lines.flush().await?;
    Ok(json!({ "count": count }))
}
