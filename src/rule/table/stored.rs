//! What a table stores with each key (`store …`, HAProxy manual §4.2).

use super::rate::Rate;

/// One kind of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the word of the manual")]
pub enum Datum {
    ServerId,
    Gpt0,
    Gpc0,
    Gpc0Rate,
    Gpc1,
    Gpc1Rate,
    ConnCnt,
    ConnCur,
    ConnRate,
    SessCnt,
    SessRate,
    HttpReqCnt,
    HttpReqRate,
    HttpErrCnt,
    HttpErrRate,
    HttpFailCnt,
    HttpFailRate,
    BytesInCnt,
    BytesInRate,
    BytesOutCnt,
    BytesOutRate,
    Gpt,
    Gpc,
    GpcRate,
}

impl Datum {
    /// Every kind with its word.
    pub const ALL: [(&'static str, Self); 24] = [
        ("server_id", Self::ServerId),
        ("gpt0", Self::Gpt0),
        ("gpc0", Self::Gpc0),
        ("gpc0_rate", Self::Gpc0Rate),
        ("gpc1", Self::Gpc1),
        ("gpc1_rate", Self::Gpc1Rate),
        ("conn_cnt", Self::ConnCnt),
        ("conn_cur", Self::ConnCur),
        ("conn_rate", Self::ConnRate),
        ("sess_cnt", Self::SessCnt),
        ("sess_rate", Self::SessRate),
        ("http_req_cnt", Self::HttpReqCnt),
        ("http_req_rate", Self::HttpReqRate),
        ("http_err_cnt", Self::HttpErrCnt),
        ("http_err_rate", Self::HttpErrRate),
        ("http_fail_cnt", Self::HttpFailCnt),
        ("http_fail_rate", Self::HttpFailRate),
        ("bytes_in_cnt", Self::BytesInCnt),
        ("bytes_in_rate", Self::BytesInRate),
        ("bytes_out_cnt", Self::BytesOutCnt),
        ("bytes_out_rate", Self::BytesOutRate),
        ("gpt", Self::Gpt),
        ("gpc", Self::Gpc),
        ("gpc_rate", Self::GpcRate),
    ];

    /// Its word.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, datum)| *datum == self).map_or("", |(name, _)| name)
    }

    /// Whether it is a rate, which takes a period.
    pub fn is_rate(self) -> bool {
        self.name().ends_with("_rate")
    }

    /// Whether it is an array, which takes a number of elements.
    pub const fn is_array(self) -> bool {
        matches!(self, Self::Gpt | Self::Gpc | Self::GpcRate)
    }

    /// Where its value is when the table has an array in its place.
    const fn in_array(self) -> Option<(Self, usize)> {
        Some(match self {
            Self::Gpt0 => (Self::Gpt, 0),
            Self::Gpc0 => (Self::Gpc, 0),
            Self::Gpc1 => (Self::Gpc, 1),
            Self::Gpc0Rate => (Self::GpcRate, 0),
            Self::Gpc1Rate => (Self::GpcRate, 1),
            _ => return None,
        })
    }

    /// The array that cannot stand beside it.
    pub fn excludes(self) -> Option<Self> {
        self.in_array().map(|(array, _)| array)
    }

    /// Whether it has 64 bits; the others go round at 32.
    const fn is_wide(self) -> bool {
        matches!(self, Self::BytesInCnt | Self::BytesOutCnt)
    }

    const fn cells(self) -> usize {
        match self {
            Self::Gpc0Rate
            | Self::Gpc1Rate
            | Self::ConnRate
            | Self::SessRate
            | Self::HttpReqRate
            | Self::HttpErrRate
            | Self::HttpFailRate
            | Self::BytesInRate
            | Self::BytesOutRate
            | Self::GpcRate => Rate::CELLS,
            _ => 1,
        }
    }
}

/// One thing that a table stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What.
    pub datum: Datum,
    /// How many of it: 1, or the elements of an array.
    pub count: usize,
    /// The period of a rate in milliseconds, more than 0; 0 otherwise.
    pub period: u64,
}

/// Where each thing is among a row's numbers.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    places: Box<[(Column, usize)]>,
    /// Numbers that a row has.
    pub(super) cells: usize,
}

/// The numbers of one value.
#[derive(Clone, Copy)]
pub(super) struct Place {
    datum: Datum,
    period: u64,
    start: usize,
}

impl Layout {
    pub(super) fn new(columns: &[Column]) -> Self {
        let mut cells = 0;
        let place = |column: &Column| {
            let start = cells;
            cells += column.count * column.datum.cells();
            (*column, start)
        };
        Self { places: columns.iter().map(place).collect(), cells }
    }

    /// Where a value is, or the element of an array that stands for it; `None` when it is not stored.
    pub(super) fn find(&self, datum: Datum, index: usize) -> Option<Place> {
        let at = |datum: Datum, index: usize| {
            let (column, start) = self.places.iter().find(|(column, _)| column.datum == datum)?;
            let start = (index < column.count).then(|| start + index * datum.cells())?;
            Some(Place { datum, period: column.period, start })
        };
        at(datum, index).or_else(|| datum.in_array().and_then(|(array, index)| at(array, index)))
    }
}

impl Place {
    /// The value.
    pub(super) fn get(self, cells: &[u64], now: u64) -> u64 {
        let cells = cells.get(self.start..).unwrap_or_default();
        if self.period > 0 {
            return Rate::load(cells).per_period(self.period, now);
        }
        cells.first().copied().unwrap_or_default()
    }

    /// Counts; gives the value then, of a rate the events of the running period.
    pub(super) fn add(self, cells: &mut [u64], number: u64, now: u64) -> u64 {
        let cells = cells.get_mut(self.start..).unwrap_or_default();
        if self.period > 0 {
            let mut rate = Rate::load(cells);
            let current = rate.count(number, self.period, now);
            rate.store(cells);
            return current;
        }
        let Some(cell) = cells.first_mut() else { return 0 };
        *cell = self.fit(cell.wrapping_add(number));
        *cell
    }

    /// Counts one down, to 0 at the least.
    pub(super) fn decrease(self, cells: &mut [u64]) {
        if let Some(cell) = cells.get_mut(self.start) {
            *cell = cell.saturating_sub(1);
        }
    }

    /// Sets the value, which is no rate; gives the one before.
    pub(super) fn set(self, cells: &mut [u64], value: u64) -> u64 {
        let value = self.fit(value);
        cells.get_mut(self.start).map_or(0, |cell| std::mem::replace(cell, value))
    }

    fn fit(self, value: u64) -> u64 {
        if self.datum.is_wide() { value } else { value & u64::from(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_cells_agree_on_what_a_rate_is() {
        for (name, datum) in Datum::ALL {
            assert_eq!(datum.cells() == Rate::CELLS, datum.is_rate(), "{name}");
            assert_eq!(datum.name(), name);
        }
    }

    #[test]
    fn an_array_stands_for_the_counters_that_it_has() {
        let columns = [
            Column { datum: Datum::ConnCnt, count: 1, period: 0 },
            Column { datum: Datum::Gpc, count: 2, period: 0 },
            Column { datum: Datum::GpcRate, count: 1, period: 10 },
        ];
        let layout = Layout::new(&columns);
        let start = |datum, index| layout.find(datum, index).map(|place| place.start);
        assert_eq!(layout.cells, 1 + 2 + 3);
        assert_eq!(start(Datum::Gpc0, 0), Some(1));
        assert_eq!(start(Datum::Gpc1, 0), Some(2));
        assert_eq!(start(Datum::Gpc, 2), None);
        assert_eq!(start(Datum::Gpc1Rate, 0), None);
        assert_eq!(start(Datum::Gpt0, 0), None);
    }

    #[test]
    fn counters_go_round_at_32_bits_and_bytes_do_not() {
        let columns = [
            Column { datum: Datum::Gpc0, count: 1, period: 0 },
            Column { datum: Datum::BytesInCnt, count: 1, period: 0 },
        ];
        let (layout, mut cells) = (Layout::new(&columns), [0; 2]);
        let [gpc, bytes] = [Datum::Gpc0, Datum::BytesInCnt].map(|datum| layout.find(datum, 0).unwrap());
        gpc.set(&mut cells, u32::MAX.into());
        assert_eq!(gpc.add(&mut cells, 1, 0), 0);
        gpc.decrease(&mut cells);
        assert_eq!(gpc.get(&cells, 0), 0);
        bytes.add(&mut cells, u32::MAX.into(), 0);
        assert_eq!(bytes.add(&mut cells, 1, 0), 1 << 32);
    }
}
