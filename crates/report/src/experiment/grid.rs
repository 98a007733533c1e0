//! Cells by their names, told apart by columns: one a factor whose levels differ, before the columns of figures.
//!
//! Where that is wider than a terminal, each cell has a line for its levels and one for its figures.

use super::columns;
use crate::wrap::{WIDTH, wrapped};

/// Names of cells of one workload, `walk host=2m stride=64`, taken apart.
#[derive(Debug)]
pub(super) struct Grid<'n> {
    /// Factors whose levels differ, or that some cells are without; in the order of the names.
    factors: Vec<&'n str>,
    /// `host=2m` where all cells have it.
    shared: Vec<String>,
    /// The levels of a cell by factor.
    rows: Vec<Vec<(&'n str, &'n str)>>,
}

impl<'n> Grid<'n> {
    pub fn of(names: impl Iterator<Item = &'n str>) -> Grid<'n> {
        let levels = |name: &'n str| name.split_whitespace().filter_map(|word| word.split_once('=')).collect();
        let rows: Vec<Vec<(&str, &str)>> = names.map(levels).collect();
        let mut all: Vec<&str> = Vec::new();
        for row in &rows {
            // A factor that the cells so far were without stands before the next one they have.
            for (nth, (factor, _)) in row.iter().enumerate() {
                if !all.contains(factor) {
                    let next = row[nth..].iter().find_map(|(later, _)| all.iter().position(|known| known == later));
                    all.insert(next.unwrap_or(all.len()), factor);
                }
            }
        }
        let is_shared = |factor: &&str| rows.iter().all(|row| level(row, factor) == level(&rows[0], factor));
        let (shared, factors): (Vec<&str>, Vec<&str>) = all.into_iter().partition(is_shared);
        let shared =
            shared.iter().map(|factor| format!("{factor}={}", level(&rows[0], factor).unwrap_or(""))).collect();
        Grid { factors, shared, rows }
    }

    /// A line with what all cells share; empty where that is nothing.
    pub fn shared(&self) -> String {
        self.shared_but("")
    }

    /// The same without what is said elsewhere.
    pub fn shared_but(&self, said: &str) -> String {
        let shared: Vec<&str> = self.shared.iter().map(String::as_str).filter(|word| *word != said).collect();
        match shared.as_slice() {
            [] => String::new(),
            shared => wrapped("", "  ", &format!("all with {}", shared.join(" "))),
        }
    }

    /// The table; `heads` and each of `figures` are as long.
    pub fn text(&self, heads: &[&str], figures: Vec<Vec<String>>) -> String {
        let wide = self.wide(heads, &figures);
        match wide.lines().all(|line| line.chars().count() <= WIDTH) {
            true => wide,
            false => self.narrow(heads, figures),
        }
    }

    fn wide(&self, heads: &[&str], figures: &[Vec<String>]) -> String {
        let head: Vec<&str> = self.factors.iter().chain(heads).copied().collect();
        let rows = self.rows.iter().zip(figures).map(|(row, figures)| {
            let levels = self.factors.iter().map(|factor| level(row, factor).unwrap_or("").to_owned());
            levels.chain(figures.iter().cloned()).collect()
        });
        columns(&head, rows)
    }

    fn narrow(&self, heads: &[&str], figures: Vec<Vec<String>>) -> String {
        // The first column indents.
        let head: Vec<&str> = [" "].iter().chain(heads).copied().collect();
        let indented = figures.into_iter().map(|figures| [" ".to_owned()].into_iter().chain(figures).collect());
        let table = columns(&head, indented);
        let mut lines = table.lines();
        let mut text: String = lines.by_ref().take(2).map(|line| line.to_owned() + "\n").collect();
        for (row, line) in self.rows.iter().zip(lines) {
            let told = row.iter().filter(|(factor, _)| self.factors.contains(factor));
            let told: Vec<String> = told.map(|(factor, level)| format!("{factor}={level}")).collect();
            text.push_str(&wrapped("", "  ", &told.join(" ")));
            text.push_str(&format!("{line}\n"));
        }
        text
    }
}

fn level<'n>(row: &[(&'n str, &'n str)], factor: &str) -> Option<&'n str> {
    row.iter().find(|(own, _)| *own == factor).map(|(_, level)| *level)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(n: usize) -> Vec<Vec<String>> {
        (0..n).map(|nth| vec![format!("{nth} [1, 2]")]).collect()
    }

    #[test]
    fn what_cells_share_is_said_once_and_the_rest_in_columns() {
        let names = ["chase venue=native host=4k stride=64", "chase venue=microvm host=4k guest=2m stride=64"];
        let grid = Grid::of(names.into_iter());
        assert_eq!(grid.shared(), "all with host=4k stride=64\n");
        let expected = "venue    guest  ns\n\
                        ──────────────────────\n\
                        native          0 [1, 2]\n\
                        microvm  2m     1 [1, 2]\n";
        assert_eq!(grid.text(&["ns"], figures(2)).replace('─', ""), expected.replace('─', ""));
    }

    #[test]
    fn a_cell_alone_is_all_there_is() {
        let grid = Grid::of(["chase"].into_iter());
        assert_eq!(
            (grid.shared(), grid.text(&["ns"], figures(1))),
            (String::new(), "ns\n────────\n0 [1, 2]\n".to_owned())
        );
    }

    #[test]
    fn what_is_too_wide_for_a_line_has_two() {
        let long = |level: &str| format!("chase one={level} two={level}");
        let names = [long(&"a".repeat(38)), long(&"b".repeat(38))];
        let text = Grid::of(names.iter().map(String::as_str)).text(&["ns"], figures(2));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines[0], lines[4]), ("   ns", "   0 [1, 2]"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}
