"""What this option provides: trees as code in other languages, and as ONNX graphs."""

from softsplit.support.options import Option

OPTION = Option(
    names={
        "export_c": "softsplit.exports.code:export_c",
        "export_excel": "softsplit.exports.excel:export_excel",
        "export_javascript": "softsplit.exports.code:export_javascript",
        "export_onnx": "softsplit.exports.graph:export_onnx",
        "export_python": "softsplit.exports.code:export_python",
        "export_sql": "softsplit.exports.sql:export_sql",
    },
    commands={"export": "softsplit.exports.command:export"},
    requires={"openpyxl": "excel", "onnx": "onnx"},
)
