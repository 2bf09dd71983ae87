"""The compiled module has the names of the pure one."""

from penstock.records.pure_sending import Receipt as Receipt
from penstock.records.pure_sending import ShortWay as ShortWay
