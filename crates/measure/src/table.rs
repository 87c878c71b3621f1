//! A table, for the terminal, for a page in Markdown and for HTML. Owns the drawing and no contents.

use std::fmt::Write as _;

/// Rows of cells under a head. The first column is text, the others are numbers and stand to the right.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// What stands above it.
    pub title: String,
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// One without rows.
    pub fn new(title: impl Into<String>, head: &[&str]) -> Table {
        Table {
            title: title.into(),
            head: head.iter().map(|cell| cell.to_string()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn widths(&self) -> Vec<usize> {
        let mut widths: Vec<usize> = self.head.iter().map(|cell| cell.chars().count()).collect();
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        widths
    }

    /// For the terminal.
    pub fn text(&self) -> String {
        let widths = self.widths();
        let line = |cells: &[String]| {
            let padded = cells.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!("{cell:<width$}"),
                _ => format!("{cell:>width$}"),
            });
            padded.collect::<Vec<_>>().join("  ").trim_end().to_string()
        };
        let rule: Vec<String> = widths.iter().map(|&width| "=".repeat(width)).collect();
        let mut out = format!("{}\n\n{}\n{}\n", self.title, line(&self.head), rule.join("  "));
        self.rows.iter().for_each(|row| {
            let _ = writeln!(out, "{}", line(row));
        });
        out
    }

    /// For a page.
    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let mut out = line(&self.head);
        let _ = writeln!(out, "|---|{}", "---:|".repeat(self.head.len().saturating_sub(1)));
        self.rows.iter().for_each(|row| out.push_str(&line(row)));
        out
    }

    /// For a browser.
    pub fn html(&self) -> String {
        let line = |cells: &[String], tag: &str| {
            let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(|row| line(row, "td")).collect();
        let title = escape(&self.title);
        format!(
            "<table><caption>{title}</caption>\n<thead>{}</thead>\n<tbody>{rows}</tbody></table>\n",
            line(&self.head, "th")
        )
    }
}

/// Text inside HTML or SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A number with so many decimals, or a dash.
pub fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "–".to_string(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_drawn_three_ways() {
        let mut table = Table::new("T", &["name", "ns"]);
        table.row(vec!["a<b".to_string(), "12".to_string()]);
        assert_eq!(table.text(), "T\n\nname  ns\n====  ==\na<b   12\n");
        assert_eq!(table.markdown(), "| name | ns |\n|---|---:|\n| a<b | 12 |\n");
        assert!(table.html().contains("<td>a&lt;b</td>"));
    }
}
