//! A page in headless Chromium (Debian's package): what it complains of, and what of the charts can be seen.

use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// What a browser made of a page.
#[derive(Debug, Deserialize)]
pub struct View {
    pub charts: Vec<ChartView>,
    /// Width of what the page holds, and of the window.
    pub scroll_width: f64,
    pub client_width: f64,
    /// Lines of the console, and errors of scripts.
    #[serde(default)]
    pub complaints: Vec<String>,
}

/// One chart.
#[derive(Debug, Deserialize)]
pub struct ChartView {
    #[allow(dead_code, reason = "for whoever reads a failure")]
    pub title: String,
    /// Bars that it says it has.
    pub expected: usize,
    /// Bars that take up room, inside the chart and in a colour that is not the background's.
    pub visible: usize,
}

/// Measures the page after it has been laid out, and leaves the answer in an element. It is added to a copy of the page.
const MEASURE: &str = r#"<script>
window.addEventListener("load", () => {
  const ground = getComputedStyle(document.body).backgroundColor;
  const charts = [...document.querySelectorAll("svg.chart")].map(chart => {
    const frame = chart.getBoundingClientRect();
    const isVisible = mark => {
      const box = mark.getBoundingClientRect(), style = getComputedStyle(mark);
      return box.width > 0 && box.height > 0 && box.left >= frame.left && box.right <= frame.right + 0.5
        && box.top >= frame.top && box.bottom <= frame.bottom && style.fill !== ground && style.fill !== "none"
        && style.visibility === "visible";
    };
    const marks = [...chart.querySelectorAll(".mark")];
    return { title: chart.getAttribute("aria-label"), expected: +chart.dataset.marks, visible: marks.filter(isVisible).length };
  });
  const root = document.documentElement;
  const view = { charts, scroll_width: root.scrollWidth, client_width: root.clientWidth };
  const answer = document.createElement("pre");
  answer.id = "view";
  answer.textContent = JSON.stringify(view);
  document.body.append(answer);
});
</script>"#;

/// Opens a page from disk in a window of some size.
pub fn open(page: &Path, width: u32, height: u32) -> View {
    let folder = page.parent().expect("a page lies in a folder");
    let measured = folder.join("measured.html");
    let text = std::fs::read_to_string(page).expect("readable");
    std::fs::write(&measured, text.replace("</body>", &format!("{MEASURE}</body>"))).expect("written");
    let profile = tempfile::tempdir().expect("a folder");
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},{height}"))
        .arg(format!("file://{}", measured.display()))
        .output()
        .expect("chromium starts: `concord doctor` says what is missing");
    let (dom, log) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "chromium: {log}");
    let answer = dom.split_once("<pre id=\"view\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (answer, _) = answer.unwrap_or_else(|| panic!("the page did not load: {log}"));
    let answer = answer.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let mut view: View = serde_json::from_str(&answer).expect("what the script wrote");
    let complains = |line: &&str| line.contains("CONSOLE") || line.contains("Uncaught");
    view.complaints = log.lines().filter(complains).map(str::to_owned).collect();
    view
}
