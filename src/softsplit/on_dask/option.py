"""What this option provides: training on the tables of a Dask cluster."""

from softsplit.support.options import Option

OPTION = Option(
    names={
        "DaskSoftTreeClassifier": "softsplit.on_dask.classifiers:DaskSoftTreeClassifier",
        "DaskSoftTreeClassifierCV": "softsplit.on_dask.classifiers:DaskSoftTreeClassifierCV",
    },
    services={"dask": "softsplit.on_dask.command"},
    requires={"distributed": "dask"},
)
